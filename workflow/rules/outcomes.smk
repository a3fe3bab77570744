# What becomes of every task, method by method.


def method_weights_file(wildcards):
    """Weights that a method reads: tuned for the very setting, or trained once for all settings."""
    weights = METHODS[wildcards.method].weights
    if weights == "tuned":
        return [f"results/tuned/{wildcards.scenario}/load{wildcards.load}/{wildcards.method}.json"]
    if weights == "trained":
        return [f"results/mat/{wildcards.method}/seed{wildcards.seed}/policy.pt"]
    return []


def simulation_stage(method):
    """Learned policies step many episodes side by side; all others are compiled."""
    return "simulate_mat" if METHODS[method].weights == "trained" else "simulate"


rule outcomes:
    """Run one method on the episodes of one setting."""
    input:
        CORPUS,
        lambda wildcards: code(f"stages.{simulation_stage(wildcards.method)}"),
        lambda wildcards: method_forecasts(wildcards.method, wildcards.pool),
        pool="results/pools/{pool}.parquet",
        trace="results/traces/{pool}/{scenario}/load{load}.parquet",
        weights=method_weights_file,
    output:
        "results/outcomes/{pool}/{scenario}/load{load}/{method}/seed{seed}.parquet",
    log:
        "results/logs/outcomes/{pool}/{scenario}/load{load}/{method}/seed{seed}.log",
    benchmark:
        "results/benchmarks/outcomes/{pool}/{scenario}/load{load}/{method}/seed{seed}.tsv"
    threads: 1
    resources:
        mem_mb=1500,
        runtime=30,
    params:
        settings=lambda wildcards: json.dumps(
            {
                "cluster": scenario_cluster(wildcards.scenario).model_dump(mode="json"),
                "weights": method_weights(wildcards.method),
            },
            sort_keys=True,
        ),
        forecasts=lambda wildcards: forecasts_option(wildcards.method, wildcards.pool),
        weights=lambda wildcards, input: (f"--weights {input.weights}" if input.weights else ""),
        stage=lambda wildcards: simulation_stage(wildcards.method),
        seed=STUDY.seeds.allocators,
    shell:
        "{PYTHON} -m mara.stages.{params.stage} --settings {params.settings:q} --method {wildcards.method} "
        "--pool {input.pool} --trace {input.trace} {params.forecasts} {params.weights} --seed {params.seed} "
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
        "{PYTHON} -m mara.stages.bound --settings {params.settings:q} --pool {input.pool} --trace {input.trace} "
        "--output {output.plan} --certificate {output.certificate} > {log} 2>&1"
