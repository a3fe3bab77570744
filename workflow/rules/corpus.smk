# Recording the corpus anew; the study itself reads the curves that the package ships.

# Family -> the modules that record it, as in mara.curves.recipes.RECORDERS.
RECORDERS = {
    "supervised": ("curves.mlp", "curves.boosting", "curves.text"),
    "vision": ("curves.vision",),
    "rl": ("curves.reinforcement.recorder",),
}


rule record_corpus:
    """Train every model of a family again and record its curves; a killed recording goes on where it stopped."""
    input:
        lambda wildcards: code("curves.record", *RECORDERS[wildcards.family]),
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


rule recorded:
    """Record the whole corpus again (about an hour and a half on two cores)."""
    input:
        expand("results/recorded/{family}.parquet", family=RECORDERS),
