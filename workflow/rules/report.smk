# Figures, run times, provenance and the report.

# Figure -> its options and the tables that they take.
FIGURES = {
    "prediction_error": {"prediction": "prediction"},
    "error_by_prefix": {"prefixes": "prediction_by_prefix"},
    "calibration": {"calibration": "calibration"},
    "forecast_fans": {"fans": "fans"},
    "completion_training": {"completion": "completion"},
    "completion_load": {"completion": "completion"},
    "held_out": {"completion": "completion"},
    "gap_closed": {"gap": "gap"},
    "gantt": {"events": "gantt_events", "tasks": "gantt_tasks"},
    "training_flow": {"training": "training_flow"},
    "training_mat": {"training": "training_mat"},
    "sample_curves": {"curves": "sample_curves"},
    "runtime": {"runtime": "runtime"},
    "dag": {"rulegraph": "rulegraph.dot"},
}
if STUDY.attribution:
    FIGURES["attribution"] = {"attribution": "attribution", "effects": "effects"}
if STUDY.ablation:
    FIGURES["ablation"] = {"ablation": "ablation"}
if SHAPING_PAIR:
    FIGURES["training_shaping"] = {"training": "training_mat"}
if STUDY.history:
    FIGURES["history"] = {"history": "history"}
if STUDY.stress_scenarios:
    FIGURES["stress"] = {"stress": "stress", "completion": "completion"}
if STUDY.fairness.methods:
    FIGURES["fairness"] = {"groups": "fairness_groups", "fairness": "fairness"}


rule figure:
    """Draw one figure from its tables."""
    input:
        code_by(
            lambda wildcards: wildcards.figure,
            {figure: (f"figures.{figure}",) for figure in FIGURES},
        ),
        lambda wildcards: [table_file(table) for table in FIGURES[wildcards.figure].values()],
    output:
        multiext("results/figures/{figure}", ".svg", ".png", ".json"),
    log:
        "results/logs/figure/{figure}.log",
    benchmark:
        "results/benchmarks/figure/{figure}.tsv"
    wildcard_constraints:
        figure="|".join(FIGURES),
    localrule: True
    conda:
        "../envs/mara.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        tables=lambda wildcards: " ".join(
            f"--{option} {table_file(table)}" for option, table in FIGURES[wildcards.figure].items()
        ),
    shell:
        "python -m mara.figures.{wildcards.figure} {params.tables} --output results/figures/{wildcards.figure} "
        "> {log} 2>&1"


rule rulegraph:
    """Write down the workflow's own graph of rules."""
    output:
        "results/tables/rulegraph.dot",
    log:
        "results/logs/rulegraph.log",
    benchmark:
        "results/benchmarks/rulegraph.tsv"
    localrule: True
    conda:
        "../envs/mara.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        rules=lambda wildcards: sorted(rule.name for rule in workflow.rules),
        # From the working folder: a folder that was moved as a whole does not run this again.
        snakefile=os.path.relpath(workflow.main_snakefile),
        settings=shlex.join(os.path.relpath(path) for path in settings_files()),
    shell:
        "python -m snakemake --snakefile {params.snakefile:q} --configfile {params.settings} --rulegraph dot "
        "> {output} 2> {log}"


rule sample_curves:
    """Pick recorded curves of every family to look at."""
    input:
        CORPUS,
        OWN_CURVES,
        code("stages.sample_curves"),
    output:
        curves="results/tables/sample_curves.csv",
        corpus="results/tables/corpus.csv",
    log:
        "results/logs/sample_curves.log",
    benchmark:
        "results/benchmarks/sample_curves.tsv"
    localrule: True
    conda:
        "../envs/mara.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        seed=STUDY.seeds.workload,
        own=OWN_OPTIONS,
    shell:
        "python -m mara.stages.sample_curves --seed {params.seed} {params.own} --curves {output.curves} "
        "--corpus {output.corpus} > {log} 2>&1"


rule forecast_fans:
    """Set forecasts of a few test cases beside the truth."""
    input:
        CORPUS,
        OWN_CURVES,
        code(
            "stages.forecast_fans",
            *PREDICTORS["flow"].modules,
            *PREDICTORS["wls"].modules,
        ),
        flow="results/predictors/flow/model",
        wls="results/predictors/wls/model",
    output:
        "results/tables/fans.csv",
    log:
        "results/logs/forecast_fans.log",
    benchmark:
        "results/benchmarks/forecast_fans.tsv"
    conda:
        "../envs/mara.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=10,
    params:
        seed=STUDY.seeds.test,
        own=OWN_OPTIONS,
    shell:
        "python -m mara.stages.forecast_fans --flow {input.flow} --wls {input.wls} --seed {params.seed} {params.own} "
        "--output {output} > {log} 2>&1"


rule gantt:
    """Log one test episode under LARA and MARA, slot by slot."""
    input:
        code("stages.log_episode"),
        lambda wildcards: method_forecasts("lara", "supervised") + method_forecasts("mara", "supervised"),
        pool="results/pools/supervised.parquet",
        trace="results/traces/supervised/standard/load1.parquet",
        policy="results/mat/mara/seed{}/policy.pt".format(STUDY.train_seeds[0]),
    output:
        events="results/tables/gantt_events.csv",
        tasks="results/tables/gantt_tasks.csv",
    log:
        "results/logs/gantt.log",
    benchmark:
        "results/benchmarks/gantt.tsv"
    conda:
        "../envs/mara.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=10,
    params:
        settings=json.dumps(
            {
                "cluster": SETTINGS.cluster.model_dump(mode="json"),
                "weights": method_weights("lara"),
            },
            sort_keys=True,
        ),
        lara=" ".join(method_forecasts("lara", "supervised")),
        mara=" ".join(method_forecasts("mara", "supervised")),
    shell:
        "python -m mara.stages.log_episode --settings {params.settings:q} --pool {input.pool} "
        "--trace {input.trace} --lara-forecasts {params.lara} --mara-forecasts {params.mara} "
        "--policy {input.policy} --events {output.events} --tasks {output.tasks} > {log} 2>&1"


rule training_curves:
    """Join the training logs of the flow and of the transformer."""
    input:
        code("stages.training_curves"),
        flow=expand(
            "results/predictors/{predictor}/training.csv",
            predictor=[name for name in STUDY.predictors if name in TRAINED_PREDICTORS],
        ),
        mat=[
            f"results/mat/{method}/seed{seed}/training.csv"
            for method in ("mara", *SHAPING_PAIR)
            for seed in method_seeds(method)
        ],
    output:
        flow="results/tables/training_flow.csv",
        mat="results/tables/training_mat.csv",
    log:
        "results/logs/training_curves.log",
    benchmark:
        "results/benchmarks/training_curves.tsv"
    localrule: True
    conda:
        "../envs/mara.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    shell:
        "python -m mara.stages.training_curves --flow {input.flow} --mat {input.mat} "
        "--flow-table {output.flow} --mat-table {output.mat} > {log} 2>&1"


rule runtime_table:
    """Sum up what every rule cost."""
    input:
        code("stages.runtime_table"),
        "results/tables/claims.csv",
    output:
        "results/tables/runtime.csv",
    log:
        "results/logs/runtime_table.log",
    benchmark:
        "results/benchmarks/runtime_table.tsv"
    localrule: True
    conda:
        "../envs/mara.yaml"
    threads: 1
    resources:
        mem_mb=500,
        runtime=5,
    shell:
        "python -m mara.stages.runtime_table --benchmarks results/benchmarks --output {output} > {log} 2>&1"


rule provenance:
    """Write down versions, seeds, settings, hardware and the state of the code."""
    input:
        code("stages.provenance"),
        "results/tables/claims.csv",
    output:
        provenance="results/provenance.json",
        settings="results/settings.yaml",
    log:
        "results/logs/provenance.log",
    benchmark:
        "results/benchmarks/provenance.tsv"
    conda:
        "../envs/mara.yaml"
    threads: 1
    resources:
        mem_mb=500,
        runtime=5,
    params:
        settings=as_json(SETTINGS),
    shell:
        "python -m mara.stages.provenance --settings {params.settings:q} --output {output.provenance} "
        "--settings-file {output.settings} > {log} 2>&1"


rule report:
    """Bind claims, figures and tables into one page, and a summary in Markdown."""
    input:
        code("stages.write_report"),
        STAMPS.data("report/*.html"),
        "results/tables/claims.csv",
        "results/tables/losses.csv",
        expand("results/tables/{table}.csv", table=SUITE_TABLES),
        expand("results/figures/{figure}.json", figure=FIGURES),
        provenance="results/provenance.json",
        settings="results/settings.yaml",
    output:
        page="results/report.html",
        summary="results/summary.md",
    log:
        "results/logs/report.log",
    benchmark:
        "results/benchmarks/report.tsv"
    localrule: True
    conda:
        "../envs/mara.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    shell:
        "python -m mara.stages.write_report --tables results/tables --figures results/figures "
        "--provenance {input.provenance} --settings-file {input.settings} --page {output.page} "
        "--summary {output.summary} > {log} 2>&1"
