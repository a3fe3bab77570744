# What becomes of every task, method by method.


rule outcomes:
    """Run one method on the episodes of one setting."""
    input:
        lambda wildcards: pool_curves(wildcards.pool),
        code_by(
            lambda wildcards: simulation_stage(wildcards.method),
            {stage: (f"stages.{stage}",) for stage in ("simulate", "simulate_mat")},
        ),
        lambda wildcards: method_forecasts(wildcards.method, wildcards.pool),
        pool="results/pools/{pool}.parquet",
        trace="results/traces/{pool}/{scenario}/load{load}.parquet",
        weights=method_weights_file,
        index=start_file,
    output:
        "results/outcomes/{pool}/{scenario}/load{load}/{method}/seed{seed}.parquet",
    log:
        "results/logs/outcomes/{pool}/{scenario}/load{load}/{method}/seed{seed}.log",
    benchmark:
        "results/benchmarks/outcomes/{pool}/{scenario}/load{load}/{method}/seed{seed}.tsv"
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
                "forecasts": scenario_forecasts(wildcards.scenario),
            },
            sort_keys=True,
        ),
        forecasts=lambda wildcards: forecasts_option(wildcards.method, wildcards.pool),
        weights=lambda wildcards, input: (f"--weights {input.weights}" if input.weights else ""),
        index=lambda wildcards, input: (f"--index {input.index}" if input.index else ""),
        curves=lambda wildcards: (
            curves_option(wildcards.pool) if simulation_stage(wildcards.method) == "simulate" else ""
        ),
        stage=lambda wildcards: simulation_stage(wildcards.method),
        seed=STUDY.seeds.allocators,
    shell:
        "python -m mara.stages.{params.stage} --settings {params.settings:q} --method {wildcards.method} "
        "--pool {input.pool} --trace {input.trace} {params.forecasts} {params.weights} {params.index} {params.curves} --seed {params.seed} "
        "--output {output} > {log} 2>&1"


rule bound:
    """Compute the clairvoyant optimum of the first test episodes."""
    input:
        code("stages.bound"),
        pool="results/pools/{pool}.parquet",
        trace="results/traces/{pool}/{scenario}/load{load}.parquet",
    output:
        plan="results/bound/{pool}/{scenario}/load{load}.parquet",
        certificate="results/bound/{pool}/{scenario}/load{load}.json",
    log:
        "results/logs/bound/{pool}/{scenario}/load{load}.log",
    benchmark:
        "results/benchmarks/bound/{pool}/{scenario}/load{load}.tsv"
    conda:
        "../envs/mara.yaml"
    threads: 1
    resources:
        mem_mb=1500,
        runtime=60,
    params:
        settings=lambda wildcards: json.dumps(
            {
                "cluster": scenario_cluster(wildcards.scenario).model_dump(mode="json"),
                "episodes": STUDY.episodes.bound,
            },
            sort_keys=True,
        ),
    shell:
        "python -m mara.stages.bound --settings {params.settings:q} --pool {input.pool} --trace {input.trace} "
        "--output {output.plan} --certificate {output.certificate} > {log} 2>&1"
