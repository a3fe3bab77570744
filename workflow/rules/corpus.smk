# Recording the corpus anew; the study itself reads the curves that the package ships.

# Family -> the modules that record it.
RECORDED_BY = {
    family: ("curves.record", *(name.removeprefix("mara.") for name in names))
    for family, names in RECORDERS.items()
}


rule record_corpus:
    """Train every model of a family again and record its curves; a killed recording goes on where it stopped."""
    input:
        code_by(lambda wildcards: wildcards.family, RECORDED_BY),
    output:
        "results/recorded/{family}.parquet",
    log:
        "results/logs/record_corpus/{family}.log",
    benchmark:
        "results/benchmarks/record_corpus/{family}.tsv"
    wildcard_constraints:
        family="|".join(RECORDERS),
    conda:
        "../envs/mara.yaml"
    threads: 2
    resources:
        mem_mb=4000,
        runtime=240,
    shell:
        "python -m mara.curves.record --family {wildcards.family} --jobs {threads} "
        "--output results/recorded --shards results/.shards > {log} 2>&1"


rule own_family:
    """Check the curves of an own family, and give every run a group with another run in it."""
    input:
        lambda wildcards: own_sources(wildcards.family),
        code("stages.own_family"),
    output:
        "results/own/{family}.parquet",
    log:
        "results/logs/own_family/{family}.log",
    benchmark:
        "results/benchmarks/own_family/{family}.tsv"
    conda:
        "../envs/mara.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        source=lambda wildcards: STUDY.own_families[wildcards.family],
    shell:
        "python -m mara.stages.own_family --family {wildcards.family} --source {params.source:q} "
        "--output {output} > {log} 2>&1"


rule recorded:
    """Record the whole corpus again (about an hour and a half on two cores)."""
    input:
        expand("results/recorded/{family}.parquet", family=RECORDERS),
