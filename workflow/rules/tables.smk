# Tables: every suite is a list of settings, every setting a comparison of methods.


rule evaluate_setting:
    """Compare the methods of a suite in one setting."""
    input:
        code("stages.evaluate_setting"),
        lambda wildcards: [path for _, _, path in setting_runs(wildcards)],
        pool=lambda wildcards: "results/pools/{}.parquet".format(
            SUITE_SETTINGS[wildcards.suite, wildcards.workload, wildcards.load][0]
        ),
    output:
        directory("results/evaluated/{suite}/{workload}/load{load}"),
    log:
        "results/logs/evaluate_setting/{suite}/{workload}/load{load}.log",
    benchmark:
        "results/benchmarks/evaluate_setting/{suite}/{workload}/load{load}.tsv"
    conda:
        "../envs/mara.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        settings=as_json(SETTINGS.evaluation),
        runs=lambda wildcards: " ".join(
            f"--run {method} {seed} {path}" for method, seed, path in setting_runs(wildcards)
        ),
    shell:
        "python -m mara.stages.evaluate_setting --settings {params.settings:q} --suite {wildcards.suite} "
        "--workload {wildcards.workload} --load {wildcards.load} --pool {input.pool} {params.runs} "
        "--output {output} > {log} 2>&1"


rule collect_tables:
    """Join the settings' rows into the tables of results."""
    input:
        code("stages.collect_tables"),
        settings=[
            f"results/evaluated/{suite}/{workload}/load{load}" for suite, workload, load in SUITE_SETTINGS
        ],
    output:
        expand("results/tables/{table}.csv", table=SUITE_TABLES),
    log:
        "results/logs/collect_tables.log",
    benchmark:
        "results/benchmarks/collect_tables.tsv"
    localrule: True
    conda:
        "../envs/mara.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    shell:
        "python -m mara.stages.collect_tables --settings-evaluated {input.settings} --output results/tables "
        "> {log} 2>&1"


rule partial:
    """Completion from the runs made so far (results/partial.csv), without making any: `snakemake partial`."""
    input:
        code("stages.partial_completion"),
    output:
        "results/partial.csv",
    log:
        "results/logs/partial.log",
    benchmark:
        "results/benchmarks/partial.tsv"
    localrule: True
    conda:
        "../envs/mara.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        settings=as_json(SETTINGS.evaluation),
        runs=lambda wildcards: runs_so_far(),
        newest=lambda wildcards: max((os.path.getmtime(path) for path in runs_so_far()), default=0),
    shell:
        "python -m mara.stages.partial_completion --settings {params.settings:q} --pools results/pools "
        "--runs {params.runs} --output {output} > {log} 2>&1"


rule prediction_scores:
    """Score one predictor by the protocol, case by case."""
    input:
        CORPUS,
        predictor_code("stages.score_predictor"),
        model="results/predictors/{predictor}/model",
    output:
        scores="results/scores/{predictor}.parquet",
        cost="results/scores/{predictor}.cost.csv",
    log:
        "results/logs/prediction_scores/{predictor}.log",
    benchmark:
        "results/benchmarks/prediction_scores/{predictor}.tsv"
    conda:
        "../envs/mara.yaml"
    threads: 1
    resources:
        mem_mb=2500,
        runtime=30,
    params:
        own="",
    shell:
        "python -m mara.stages.score_predictor --predictor {wildcards.predictor} --model {input.model} "
        "{params.own} --output {output.scores} --cost {output.cost} > {log} 2>&1"


use rule prediction_scores as own_prediction_scores with:
    input:
        predictor_code("stages.score_predictor"),
        lambda wildcards: pool_curves(wildcards.family),
        model="results/predictors/{predictor}/model",
    output:
        scores="results/scores/{family}/{predictor}.parquet",
        cost="results/scores/{family}/{predictor}.cost.csv",
    log:
        "results/logs/prediction_scores/{family}/{predictor}.log",
    benchmark:
        "results/benchmarks/prediction_scores/{family}/{predictor}.tsv"
    params:
        own=lambda wildcards: f"--own {wildcards.family} {pool_curves(wildcards.family)}",


# What is scored: every predictor on the corpus, and on each own family.
SCORED = [
    *STUDY.predictors,
    *expand("{family}/{predictor}", family=STUDY.own_families, predictor=STUDY.predictors),
]


rule prediction_tables:
    """Tabulate the prediction errors with intervals and paired differences."""
    input:
        code("stages.prediction_tables"),
        scores=[f"results/scores/{scored}.parquet" for scored in SCORED],
        costs=[f"results/scores/{scored}.cost.csv" for scored in SCORED],
    output:
        prediction="results/tables/prediction.csv",
        by_prefix="results/tables/prediction_by_prefix.csv",
        differences="results/tables/prediction_differences.csv",
        calibration="results/tables/calibration.csv",
        cost="results/tables/prediction_cost.csv",
    log:
        "results/logs/prediction_tables.log",
    benchmark:
        "results/benchmarks/prediction_tables.tsv"
    conda:
        "../envs/mara.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        settings=as_json(SETTINGS.evaluation),
    shell:
        "python -m mara.stages.prediction_tables --settings {params.settings:q} --scores {input.scores} "
        "--costs {input.costs} --prediction {output.prediction} --by-prefix {output.by_prefix} --differences {output.differences} "
        "--calibration {output.calibration} --cost {output.cost} > {log} 2>&1"


rule claims:
    """Judge the published claims by the rules fixed beforehand."""
    input:
        code("stages.judge_claims"),
        "results/tables/completion.csv",
        "results/tables/comparisons.csv",
        "results/tables/effects.csv",
        "results/tables/ablation.csv",
        "results/tables/prediction_differences.csv",
        "results/tables/shaping.csv",
    output:
        claims="results/tables/claims.csv",
        losses="results/tables/losses.csv",
    log:
        "results/logs/claims.log",
    benchmark:
        "results/benchmarks/claims.tsv"
    localrule: True
    conda:
        "../envs/mara.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        settings=as_json(SETTINGS.evaluation),
    shell:
        "python -m mara.stages.judge_claims --settings {params.settings:q} --tables results/tables "
        "--claims {output.claims} --losses {output.losses} > {log} 2>&1"


# Made where all that it compares is made anyway.
VARIANT_TABLES = (
    ["results/tables/flow_variants.csv"]
    if {"flow", "flow_distilled", "flow_history"} <= set(STUDY.predictors)
    else []
)


rule flow_variants:
    """Measure what the parts of the flow are worth, and earlier runs."""
    input:
        CORPUS,
        code(
            "stages.flow_variants",
            "predictors.flow.predictor",
            "predictors.flow.distilled",
            "predictors.flow.history",
        ),
        flow="results/predictors/flow/model",
        distilled="results/predictors/flow_distilled/model",
        history="results/predictors/flow_history/model",
    output:
        "results/tables/flow_variants.csv",
    log:
        "results/logs/flow_variants.log",
    benchmark:
        "results/benchmarks/flow_variants.tsv"
    conda:
        "../envs/mara.yaml"
    threads: 1
    resources:
        mem_mb=2500,
        runtime=30,
    params:
        settings=as_json(SETTINGS.evaluation),
        seed=STUDY.seeds.predictors,
    shell:
        "python -m mara.stages.flow_variants --settings {params.settings:q} --flow {input.flow} "
        "--distilled {input.distilled} --history {input.history} --seed {params.seed} --output {output} "
        "> {log} 2>&1"
