# Predictors: fitted once, then asked about every task after every unit.


rule fit_predictor:
    """Fit one predictor on the training curves, and calibrate it where it is calibrated."""
    input:
        CORPUS,
        predictor_code("stages.fit_predictor"),
    output:
        "results/predictors/{predictor}/model",
    log:
        "results/logs/fit_predictor/{predictor}.log",
    benchmark:
        "results/benchmarks/fit_predictor/{predictor}.tsv"
    wildcard_constraints:
        predictor=f"({'|'.join(PREDICTORS)})({DEADLINE})?",
    conda:
        "../envs/mara.yaml"
    threads: 1
    resources:
        mem_mb=2500,
        runtime=60,
    params:
        settings=lambda wildcards: predictor_settings(wildcards.predictor),
        seed=STUDY.seeds.predictors,
    shell:
        "python -m mara.stages.fit_predictor --settings {params.settings:q} "
        "--predictor {wildcards.predictor} --seed {params.seed} --output {output} > {log} 2>&1"


rule train_predictor:
    """Train one predictor that has a network; an interrupted training goes on where it stopped."""
    input:
        CORPUS,
        predictor_code("stages.train_predictor"),
    output:
        model="results/predictors/{predictor}/model",
        log="results/predictors/{predictor}/training.csv",
    log:
        "results/logs/train_predictor/{predictor}.log",
    benchmark:
        "results/benchmarks/train_predictor/{predictor}.tsv"
    wildcard_constraints:
        predictor="|".join(TRAINED_PREDICTORS),
    conda:
        "../envs/mara.yaml"
    threads: 1
    resources:
        mem_mb=3000,
        runtime=90,
        gpu=1 if STUDY.device == "cuda" else 0,
    params:
        device=STUDY.device,
        settings=lambda wildcards: predictor_settings(wildcards.predictor),
        module=lambda wildcards: f"mara.{predictor_row(wildcards.predictor).modules[0]}",
        seed=STUDY.seeds.predictors,
    shell:
        "python -m mara.stages.train_predictor --settings {params.settings:q} "
        "--predictor {wildcards.predictor} --module {params.module} --seed {params.seed} --threads {threads} "
        "--device {params.device} --checkpoints results/.checkpoints --output {output.model} "
        "--training-log {output.log} > {log} 2>&1"


rule add_deadline:
    """Let the trained flow read the deadline too; its network is shared."""
    input:
        CORPUS,
        predictor_code("stages.add_deadline"),
        flow=lambda wildcards: f"results/predictors/{without_deadline(wildcards.predictor)}/model",
    output:
        "results/predictors/{predictor}/model",
    log:
        "results/logs/add_deadline/{predictor}.log",
    benchmark:
        "results/benchmarks/add_deadline/{predictor}.tsv"
    wildcard_constraints:
        predictor="flow(_history)?_deadline",
    conda:
        "../envs/mara.yaml"
    threads: 1
    resources:
        mem_mb=2500,
        runtime=30,
    params:
        flow=lambda wildcards: without_deadline(wildcards.predictor),
        seed=STUDY.seeds.predictors,
    shell:
        "python -m mara.stages.add_deadline --flow {input.flow} --predictor {params.flow} "
        "--seed {params.seed} --output {output} > {log} 2>&1"


rule fewer_paths:
    """Let the trained flow sample fewer paths a forecast; what stands on them is fitted anew."""
    input:
        CORPUS,
        predictor_code("stages.fewer_paths"),
        flow=lambda wildcards: f"results/predictors/{whole(wildcards.predictor)}/model",
    output:
        "results/predictors/{predictor}/model",
    log:
        "results/logs/fewer_paths/{predictor}.log",
    benchmark:
        "results/benchmarks/fewer_paths/{predictor}.tsv"
    wildcard_constraints:
        predictor="|".join(FEWER_PATHS),
    conda:
        "../envs/mara.yaml"
    threads: 1
    resources:
        mem_mb=2500,
        runtime=30,
    params:
        paths=lambda wildcards: FEWER_PATHS[wildcards.predictor],
        seed=STUDY.seeds.predictors,
    shell:
        "python -m mara.stages.fewer_paths --flow {input.flow} --paths {params.paths} --seed {params.seed} "
        "--output {output} > {log} 2>&1"


rule distill:
    """Distil the trained flow into a one-pass head."""
    input:
        CORPUS,
        predictor_code("stages.distill"),
        flow=lambda wildcards: f"results/predictors/{teacher(wildcards.predictor)}/model",
    output:
        model="results/predictors/{predictor}/model",
        arrays="results/predictors/{predictor}/arrays.npz",
    log:
        "results/logs/distill/{predictor}.log",
    benchmark:
        "results/benchmarks/distill/{predictor}.tsv"
    wildcard_constraints:
        predictor="flow_distilled(_deadline)?",
    conda:
        "../envs/mara.yaml"
    threads: 1
    resources:
        mem_mb=2500,
        runtime=30,
    params:
        settings=lambda wildcards: predictor_settings(wildcards.predictor),
        teacher=lambda wildcards: teacher(wildcards.predictor),
        seed=STUDY.seeds.predictors,
    shell:
        "python -m mara.stages.distill --settings {params.settings:q} --flow {input.flow} "
        "--teacher {params.teacher} --seed {params.seed} --threads {threads} --output {output.model} "
        "--arrays {output.arrays} > {log} 2>&1"


ruleorder: add_deadline > distill > train_predictor > fit_predictor


rule forecasts:
    """Forecast the remaining demand of every task of a pool after every unit."""
    input:
        lambda wildcards: pool_curves(wildcards.pool),
        predictor_code("stages.tabulate"),
        model="results/predictors/{predictor}/model",
        pool="results/pools/{pool}.parquet",
    output:
        directory("results/forecasts/{predictor}/{pool}"),
    log:
        "results/logs/forecasts/{predictor}/{pool}.log",
    benchmark:
        "results/benchmarks/forecasts/{predictor}/{pool}.tsv"
    wildcard_constraints:
        predictor=f"({'|'.join(PREDICTORS)})({DEADLINE})?|{'|'.join(FEWER_PATHS)}",
    conda:
        "../envs/mara.yaml"
    threads: 1
    resources:
        mem_mb=2500,
        runtime=60,
    params:
        predictor=lambda wildcards: whole(wildcards.predictor),
        curves=lambda wildcards: curves_option(wildcards.pool),
        more="",
    shell:
        "python -m mara.stages.tabulate --predictor {params.predictor} --model {input.model} "
        "--pool {input.pool} {params.curves} {params.more} --output {output} > {log} 2>&1"


# Those that know earlier runs share few prefixes, as tasks of a curve may know different runs: they are asked
# for less often.
use rule forecasts as history_forecasts with:
    input:
        lambda wildcards: pool_curves(wildcards.pool),
        code("stages.tabulate", *PREDICTORS["flow_history"].modules),
        model=lambda wildcards: f"results/predictors/{whole(wildcards.predictor)}/model",
        pool="results/pools/{pool}.parquet",
    output:
        directory("results/forecasts/{predictor}/{pool}"),
    log:
        "results/logs/history_forecasts/{predictor}/{pool}.log",
    benchmark:
        "results/benchmarks/history_forecasts/{predictor}/{pool}.tsv"
    wildcard_constraints:
        predictor=f"flow_history({DEADLINE})?|{'|'.join(FEWER_RUNS)}",
    params:
        predictor=lambda wildcards: whole(wildcards.predictor),
        curves=lambda wildcards: curves_option(wildcards.pool),
        more=lambda wildcards: (
            f"--refresh {STUDY.history_refresh}"
            + (
                f" --earlier-runs {FEWER_RUNS[wildcards.predictor]}"
                if wildcards.predictor in FEWER_RUNS
                else ""
            )
        ),


rule mixed_forecasts:
    """Join the forecasts of the families' tasks as their pools are joined."""
    input:
        code("stages.join_forecasts"),
        forecasts=expand("results/forecasts/{{predictor}}/{family}", family=MIXED),
    output:
        directory("results/forecasts/{predictor}/mixed"),
    log:
        "results/logs/mixed_forecasts/{predictor}.log",
    benchmark:
        "results/benchmarks/mixed_forecasts/{predictor}.tsv"
    localrule: True
    conda:
        "../envs/mara.yaml"
    threads: 1
    resources:
        mem_mb=2500,
        runtime=10,
    params:
        templates=STUDY.fairness.templates,
    shell:
        "python -m mara.stages.join_forecasts --forecasts {input.forecasts} --templates {params.templates} "
        "--output {output} > {log} 2>&1"


ruleorder: mixed_forecasts > history_forecasts > forecasts
