# Task pools, the training load and traces.


rule task_pool:
    """Draw the task templates of one pool."""
    input:
        lambda wildcards: pool_curves(task_curves(wildcards.pool)),
        code("stages.make_pool"),
    output:
        pool="results/pools/{pool}.parquet",
        card="results/pools/{pool}.card.json",
    log:
        "results/logs/task_pool/{pool}.log",
    benchmark:
        "results/benchmarks/task_pool/{pool}.tsv"
    conda:
        "../envs/mara.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        settings=lambda wildcards: task_settings(wildcards.pool),
        family=lambda wildcards: POOLS[wildcards.pool][0],
        curves=lambda wildcards: curves_option(task_curves(wildcards.pool)),
        split=lambda wildcards: POOLS[wildcards.pool][1],
        part=lambda wildcards: (f"--part {POOLS[wildcards.pool][2]}" if POOLS[wildcards.pool][2] else ""),
        seed=lambda wildcards: POOLS[wildcards.pool][3],
    shell:
        "python -m mara.stages.make_pool --settings {params.settings:q} --family {params.family} "
        "--split {params.split} {params.part} {params.curves} --seed {params.seed} "
        "--output {output.pool} --card {output.card} > {log} 2>&1"


rule mixed_pool:
    """Join tasks of all families into one pool."""
    input:
        CORPUS,
        code("stages.join_pools"),
        pools=expand("results/pools/{family}.parquet", family=MIXED),
    output:
        pool="results/pools/mixed.parquet",
        card="results/pools/mixed.card.json",
    log:
        "results/logs/mixed_pool.log",
    benchmark:
        "results/benchmarks/mixed_pool.tsv"
    localrule: True
    conda:
        "../envs/mara.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        templates=STUDY.fairness.templates,
    shell:
        "python -m mara.stages.join_pools --pools {input.pools} --templates {params.templates} "
        "--output {output.pool} --card {output.card} > {log} 2>&1"


ruleorder: mixed_pool > task_pool


rule noisy_curves:
    """Put noise on the losses that predictors see; tasks are completed by the true ones."""
    input:
        CORPUS,
        code("stages.noisy_curves"),
    output:
        "results/curves/noisy.parquet",
    log:
        "results/logs/noisy_curves.log",
    benchmark:
        "results/benchmarks/noisy_curves.tsv"
    localrule: True
    conda:
        "../envs/mara.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        level=STUDY.noisy_losses.level if STUDY.noisy_losses else 0.0,
        seed=STUDY.seeds.test,
    shell:
        "python -m mara.stages.noisy_curves --family supervised --level {params.level} --seed {params.seed} "
        "--output {output} > {log} 2>&1"


rule training_load:
    """Find the arrival rate at which faithful LARA completes the published share of tasks."""
    input:
        code("stages.calibrate_load"),
        replayed(SETTINGS.arrivals),
        pool="results/pools/calibration.parquet",
        forecasts="results/forecasts/wls/calibration",
    output:
        "results/training_load.json",
    log:
        "results/logs/training_load.log",
    benchmark:
        "results/benchmarks/training_load.tsv"
    conda:
        "../envs/mara.yaml"
    threads: 1
    resources:
        mem_mb=1500,
        runtime=20,
    params:
        settings=json.dumps(
            {
                "arrivals": SETTINGS.arrivals.model_dump(mode="json"),
                "cluster": SETTINGS.cluster.model_dump(mode="json"),
                "lara": SETTINGS.allocators.lara.model_dump(mode="json"),
                "lara_completion": SETTINGS.allocators.lara_completion,
                "episodes": STUDY.episodes.calibration,
            },
            sort_keys=True,
        ),
        seed=STUDY.seeds.workload,
    shell:
        "python -m mara.stages.calibrate_load --settings {params.settings:q} --seed {params.seed} "
        "--pool {input.pool} --forecasts {input.forecasts} --output {output} > {log} 2>&1"


rule trace:
    """Draw the episodes of one setting."""
    input:
        code("stages.make_trace"),
        lambda wildcards: replayed(scenario_arrivals(wildcards.scenario)),
        pool="results/pools/{pool}.parquet",
        training_load="results/training_load.json",
    output:
        trace="results/traces/{pool}/{scenario}/load{load}.parquet",
        card="results/traces/{pool}/{scenario}/load{load}.card.json",
    log:
        "results/logs/trace/{pool}/{scenario}/load{load}.log",
    benchmark:
        "results/benchmarks/trace/{pool}/{scenario}/load{load}.tsv"
    conda:
        "../envs/mara.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        settings=lambda wildcards: json.dumps(
            {
                "arrivals": scenario_arrivals(wildcards.scenario).model_dump(mode="json"),
                "cluster": scenario_cluster(wildcards.scenario).model_dump(mode="json"),
                "standard_cluster": SETTINGS.cluster.model_dump(mode="json"),
                **scenario_tasks(wildcards.scenario),
            },
            sort_keys=True,
        ),
        episodes=lambda wildcards: trace_episodes(wildcards.pool, wildcards.scenario),
        seed=lambda wildcards: POOLS[wildcards.pool][3],
    shell:
        "python -m mara.stages.make_trace --settings {params.settings:q} --pool {input.pool} "
        "--training-load {input.training_load} --load {wildcards.load} --episodes {params.episodes} "
        "--seed {params.seed} --output {output.trace} --card {output.card} > {log} 2>&1"
