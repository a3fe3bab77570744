# Predictors: fitted once, then asked about every task after every unit.


def predictor_code(stage):
    """Stamps of a stage and of the one predictor that a job runs."""
    return lambda wildcards: code(stage, *predictor_row(wildcards.predictor).modules)


rule fit_predictor:
    """Fit one predictor on the training curves, and calibrate it where it is calibrated."""
    input:
        CORPUS,
        predictor_code("stages.fit_predictor"),
    output:
        model="results/predictors/{predictor}/model",
        log="results/predictors/{predictor}/training.csv",
    log:
        "results/logs/fit_predictor/{predictor}.log",
    benchmark:
        "results/benchmarks/fit_predictor/{predictor}.tsv"
    threads: 1
    resources:
        mem_mb=2500,
        runtime=60,
    params:
        settings=lambda wildcards: predictor_settings(wildcards.predictor),
        seed=STUDY.seeds.predictors,
    shell:
        "{PYTHON} -m mara.stages.fit_predictor --settings {params.settings:q} --predictor {wildcards.predictor} "
        "--seed {params.seed} --output {output.model} --training-log {output.log} > {log} 2>&1"


rule forecasts:
    """Forecast the remaining demand of every task of a pool after every unit."""
    input:
        CORPUS,
        predictor_code("stages.tabulate"),
        model="results/predictors/{predictor}/model",
        pool="results/pools/{pool}.parquet",
    output:
        directory("results/forecasts/{predictor}/{pool}"),
    log:
        "results/logs/forecasts/{predictor}/{pool}.log",
    benchmark:
        "results/benchmarks/forecasts/{predictor}/{pool}.tsv"
    threads: 1
    resources:
        mem_mb=2500,
        runtime=60,
    params:
        settings=lambda wildcards: predictor_settings(wildcards.predictor),
    shell:
        "{PYTHON} -m mara.stages.tabulate --settings {params.settings:q} --predictor {wildcards.predictor} "
        "--model {input.model} --pool {input.pool} --output {output} > {log} 2>&1"
