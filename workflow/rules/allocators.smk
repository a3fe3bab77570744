# Allocators: weights tuned on training episodes, networks trained on them.


rule tune:
    """Tune a method's weights on training episodes of the setting it is tested in."""
    input:
        CORPUS,
        code("stages.tune"),
        lambda wildcards: method_forecasts(wildcards.method, "training"),
        pool="results/pools/training.parquet",
        trace="results/traces/training/{scenario}/load{load}.parquet",
    output:
        "results/tuned/{scenario}/load{load}/{method}.json",
    log:
        "results/logs/tune/{scenario}/load{load}/{method}.log",
    benchmark:
        "results/benchmarks/tune/{scenario}/load{load}/{method}.tsv"
    conda:
        "../envs/mara.yaml"
    threads: 1
    resources:
        mem_mb=1500,
        runtime=30,
    params:
        settings=lambda wildcards: json.dumps(
            {
                "cluster": scenario_cluster(wildcards.scenario).model_dump(mode="json"),
                "weights": method_weights(wildcards.method),
                "tuner": SETTINGS.allocators.tuner.model_dump(mode="json"),
                "episodes": STUDY.episodes.tuning,
            },
            sort_keys=True,
        ),
        forecasts=lambda wildcards: forecasts_option(wildcards.method, "training"),
        seed=STUDY.seeds.allocators,
    shell:
        "python -m mara.stages.tune --settings {params.settings:q} --method {wildcards.method} --pool {input.pool} "
        "--trace {input.trace} {params.forecasts} --seed {params.seed} --output {output} > {log} 2>&1"


rule train_mat:
    """Train the multi-agent transformer once: one method, one training seed."""
    input:
        CORPUS,
        code("stages.train_mat"),
        lambda wildcards: method_forecasts(wildcards.method, "training"),
        pool="results/pools/training.parquet",
        traces=[f"results/traces/training/{scenario}/load{load}.parquet" for scenario, load in COURSES],
        indices=lambda wildcards: [
            start_of_mat(wildcards.method, scenario, load) for scenario, load in COURSES
        ],
    output:
        policy="results/mat/{method}/seed{seed}/policy.pt",
        log="results/mat/{method}/seed{seed}/training.csv",
    log:
        "results/logs/train_mat/{method}/seed{seed}.log",
    benchmark:
        "results/benchmarks/train_mat/{method}/seed{seed}.tsv"
    conda:
        "../envs/mara.yaml"
    threads: 1
    resources:
        mem_mb=3000,
        runtime=60,
    params:
        settings=lambda wildcards: mat_settings(wildcards.method),
        forecasts=lambda wildcards: forecasts_option(wildcards.method, "training"),
    shell:
        "python -m mara.stages.train_mat --settings {params.settings:q} --pool {input.pool} "
        "--traces {input.traces} --indices {input.indices} {params.forecasts} --seed {wildcards.seed} "
        "--threads {threads} --checkpoints results/.checkpoints --output {output.policy} "
        "--training-log {output.log} > {log} 2>&1"


rule shaping:
    """Check on real episodes that the log-progress potential leaves the objective unchanged."""
    input:
        CORPUS,
        code("stages.check_shaping"),
        pool="results/pools/validation.parquet",
        trace="results/traces/validation/standard/load1.parquet",
    output:
        "results/tables/shaping.csv",
    log:
        "results/logs/shaping.log",
    benchmark:
        "results/benchmarks/shaping.tsv"
    conda:
        "../envs/mara.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        settings=json.dumps({"cluster": SETTINGS.cluster.model_dump(mode="json")}, sort_keys=True),
    shell:
        "python -m mara.stages.check_shaping --settings {params.settings:q} --pool {input.pool} "
        "--trace {input.trace} --output {output} > {log} 2>&1"
