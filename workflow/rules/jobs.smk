# What jobs read: settings, forecasts, weights and runs, by wildcard.


def scenario_arrivals(name):
    """Arrival settings of a scenario."""
    scenario = STUDY.scenarios.get(name)
    return scenario.arrivals if scenario and scenario.arrivals else SETTINGS.arrivals


def replayed(arrivals):
    """The file of submit times that arrivals replay, if they do."""
    return [str(arrivals.replay_file)] if arrivals.replay_file else []


def scenario_cluster(name):
    """Cluster settings of a scenario."""
    scenario = STUDY.scenarios.get(name)
    return scenario.cluster if scenario and scenario.cluster else SETTINGS.cluster


def scenario_forecasts(name):
    """What a scenario does to forecasts; nothing in most."""
    scenario = STUDY.scenarios.get(name)
    return scenario.forecasts.model_dump(mode="json") if scenario and scenario.forecasts else {}


def scenario_tasks(name):
    """Which tasks of the pool a scenario draws."""
    scenario = STUDY.scenarios.get(name)
    return {"slack": scenario.slack, "mix": scenario.mix} if scenario else {}


def trace_episodes(pool, scenario):
    """Episodes of a trace: stress settings have fewer, in proportion to the tasks that a cluster takes up."""
    if pool in ("training", "validation"):
        return getattr(STUDY.episodes, pool)
    if scenario == "standard" and pool not in ("noisy", "mixed"):
        return STUDY.episodes.test
    growth = scenario_cluster(scenario).nodes / SETTINGS.cluster.nodes
    return max(1, round(STUDY.episodes.stress / max(growth, 1.0)))


def load_name(load):
    """The load as it stands in paths: 1, 1.25, 2."""
    return f"{load:g}"


def method_weights(method):
    """Weights of a method's allocator before any tuning, as they stand in the settings."""
    section = {
        "srpt": "estimates",
        "least_laxity": "estimates",
        "moore_hodgson": "estimates",
        "fair_index": "fair",
        "index_matching": "matching",
    }.get(METHODS[method].allocator, METHODS[method].allocator)
    weights = getattr(SETTINGS.allocators, section, None)
    strength = {"strength": FAIR_STRENGTHS[method]} if method in FAIR_STRENGTHS else {}
    return weights.model_dump(mode="json") | strength if weights else {}


def predictor_settings(predictor):
    """The JSON of the settings' sections that a predictor reads."""
    chosen = {}
    for place in predictor_row(predictor).settings:
        section, branch, keys = SETTINGS, chosen, place.split(".")
        for key in keys[:-1]:
            section, branch = getattr(section, key), branch.setdefault(key, {})
        branch[keys[-1]] = getattr(section, keys[-1]).model_dump(mode="json")
    return json.dumps(chosen, sort_keys=True)


def mat_settings(method):
    """The transformer's settings for a method: those of the run, changed where the method is an ablation."""
    _, changes = MAT_VARIANTS.get(method, ("", {}))
    mat = SETTINGS.mat.model_dump(mode="json") | changes
    clusters = [scenario_cluster(scenario).model_dump(mode="json") for scenario, _ in COURSES]
    return json.dumps({"mat": mat, "clusters": clusters}, sort_keys=True)


def runs_so_far():
    """Outcome files that are there."""
    return sorted(map(str, Path("results/outcomes").glob("*/*/load*/*/seed*.parquet")))


# Predictors with a network, with and without the deadline as an input.
TRAINED_PREDICTORS = [
    name + suffix for name, row in PREDICTORS.items() if row.logs_training for suffix in ("", DEADLINE)
]


def without_deadline(predictor):
    """Name of the variant that does not read the deadline."""
    return predictor.removesuffix(DEADLINE)


def teacher(distilled):
    """The flow that a distilled head imitates."""
    return distilled.replace("flow_distilled", "flow")


def warn_of_too_many_cores(cores):
    """Say once that more jobs than cores do not help."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if cores and available and cores > available:
        print(
            f"note: --cores {cores}, but this machine has {available}: jobs share them; nothing is gained.",
            file=sys.stderr,
        )


def table_file(table):
    """A table's file: CSV, unless its name says otherwise."""
    return f"results/tables/{table}" if "." in table else f"results/tables/{table}.csv"


def warn_of_full_disk(folder):
    """Say so if the disk is full: then the log of the job that failed may be empty."""
    free = shutil.disk_usage(folder).free
    if free < 1_000_000:
        print(
            f"{folder.resolve()}: the disk is full ({free} bytes left); make room and start again: what is finished stays.",
            file=sys.stderr,
        )


def print_claims(claims, report):
    """Print the verdicts and where to read on."""
    if not claims.is_file():
        return
    with claims.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    print(f"\n{'claim':<7}{'published':<34}{'measured':>10}  {'95 % interval':<20}holds")
    for row in rows:
        interval = "[{:.4f}, {:.4f}]".format(float(row["ci_low"] or "nan"), float(row["ci_high"] or "nan"))
        measured = float(row["measured"] or "nan")
        print(f"{row['claim']:<7}{row['published'][:32]:<34}{measured:>10.4f}  {interval:<20}{row['holds']}")
    if report.is_file():
        print(f"\nReport: {report.resolve()}")


def whole(predictor):
    """The predictor that one with fewer earlier runs or fewer paths is made of; others are whole."""
    if predictor in FEWER_RUNS:
        return f"flow_history{DEADLINE}"
    return f"flow{DEADLINE}" if predictor in FEWER_PATHS else predictor


def predictor_code(stage):
    """Stamps of a stage and of the one predictor that a job runs."""
    return code_by(
        lambda wildcards: without_deadline(whole(wildcards.predictor)),
        {name: (stage, *row.modules) for name, row in PREDICTORS.items()},
    )


def method_forecasts(method, pool):
    """Forecast table that a method reads on a pool; nothing for methods that read none."""
    predictor = METHODS[method].predictor
    return [f"results/forecasts/{predictor}/{pool}"] if predictor else []


def forecasts_option(method, pool):
    """The same as a command-line option."""
    return " ".join(f"--forecasts {path}" for path in method_forecasts(method, pool))


# Courses of the transformer's curriculum: (scenario, load).
COURSES = [("standard", load_name(load)) for load in STUDY.training_loads] + [
    (scenario, load_name(1.0)) for scenario in STUDY.training_scenarios
]


def index_on(predictor):
    """The tuned index that reads forecasts of the whole predictor."""
    return next(
        name
        for name, row in METHODS.items()
        if row.allocator == "index" and row.predictor == whole(predictor)
    )


def policy_of(method):
    """The method that trains the transformer's policy: itself, or the one on forecasts of the whole predictor."""
    if METHODS[method].weights == "trained":
        return method
    model = whole(METHODS[method].predictor)
    return next(name for name, row in METHODS.items() if row.allocator == "mat" and row.predictor == model)


def tuned_weights(method, scenario, load):
    """Weights of a tuned method: tuned at the load, and in the scenario where its allocators are tuned anew.

    On alike nodes matching changes nothing, so that the index that was tuned there serves.
    """
    row = STUDY.scenarios.get(scenario)
    place = scenario if row and row.retuned else "standard"
    if METHODS[method].allocator == "index_matching" and len(set(scenario_cluster(place).speeds or ())) < 2:
        method = index_on(METHODS[method].predictor)
    return f"results/tuned/{place}/load{load}/{method}.json"


def start_of_mat(method, scenario, load):
    """Weights of the tuned index that the transformer starts from in a setting; matched, if there is such a method."""
    predictor = whole(METHODS[method].predictor)
    matched = [
        name
        for name, row in METHODS.items()
        if row.allocator == "index_matching" and row.predictor == predictor
    ]
    return tuned_weights(matched[0] if matched else index_on(predictor), scenario, load)


def is_mat(method):
    """Whether a method runs a trained transformer."""
    return METHODS[method].allocator == "mat"


def method_weights_file(wildcards):
    """Weights that a method reads: tuned for the setting, or trained once for all settings."""
    _, predictor, weights = METHODS[wildcards.method]
    if is_mat(wildcards.method):
        return [f"results/mat/{policy_of(wildcards.method)}/seed{wildcards.seed}/policy.pt"]
    if weights in ("tuned", "borrowed"):
        tuned = wildcards.method if weights == "tuned" else index_on(predictor)
        return [tuned_weights(tuned, wildcards.scenario, wildcards.load)]
    return []


def start_file(wildcards):
    """Weights of the tuned index beside those of a transformer; nothing for other methods."""
    if not is_mat(wildcards.method):
        return []
    return [start_of_mat(wildcards.method, wildcards.scenario, wildcards.load)]


def simulation_stage(method):
    """Learned policies step many episodes side by side; all others are compiled."""
    return "simulate_mat" if is_mat(method) else "simulate"


MAIN_BOUND = SETTINGS.evaluation.bound


def has_bound(scenario):
    """Whether the optimum of a stress scenario is computed: where it is exact, not too large, and its own."""
    row, cluster = STUDY.scenarios[scenario], scenario_cluster(scenario)
    plain = not (cluster.speeds or cluster.switching_cost or cluster.failure_rate)
    return plain and cluster.max_nodes_per_task == 1 and cluster.nodes <= 16 and row.forecasts is None


def suite_settings():
    """(suite, workload, load) -> (pool, scenario, methods, whether the optimum is computed)."""
    unit = load_name(1.0)
    listed = {
        ("in_distribution", "supervised", unit): (
            "supervised",
            "standard",
            STUDY.methods,
            True,
        )
    }
    for load in sorted(set(STUDY.loads) - {1.0}):
        key = ("unseen_load", "supervised", load_name(load))
        listed[key] = ("supervised", "standard", STUDY.methods, True)
    for family in (*STUDY.held_out_families, *STUDY.own_families):
        listed["held_out_family", family, unit] = (
            family,
            "standard",
            STUDY.methods,
            True,
        )
    if STUDY.attribution:
        listed["attribution", "supervised", unit] = (
            "supervised",
            "standard",
            STUDY.attribution,
            False,
        )
    if STUDY.ablation:
        listed["ablation", "supervised", unit] = (
            "supervised",
            "standard",
            STUDY.ablation,
            False,
        )
    if STUDY.history:
        for family in ("supervised", *STUDY.held_out_families, *STUDY.own_families):
            listed["history", family, unit] = (
                family,
                "standard",
                STUDY.history,
                False,
            )
    for scenario in STUDY.stress_scenarios:
        listed["stress", scenario, unit] = ("supervised", scenario, STUDY.stress, has_bound(scenario))
    if STUDY.noisy_losses:
        listed["stress", "noisy_losses", unit] = ("noisy", "standard", STUDY.stress, True)
    if STUDY.fairness.methods:
        for load in STUDY.fairness.loads:
            key = ("fairness", "mixed", load_name(load))
            listed[key] = ("mixed", "standard", STUDY.fairness.methods, True)
        for scenario in STUDY.fairness.scenarios:
            key = ("fairness", f"mixed_{scenario}", unit)
            listed[key] = ("mixed", scenario, STUDY.fairness.methods, True)
    return listed


SUITE_SETTINGS = suite_settings()


def method_seeds(method):
    """Training seeds of a method; methods that are not trained have the one seed 0."""
    if not is_mat(method):
        return (0,)
    if method == SETTINGS.evaluation.method:
        return STUDY.train_seeds
    if METHODS[method].weights == "borrowed":
        return STUDY.train_seeds[:1]
    noisy = method in (SETTINGS.evaluation.shaped, SETTINGS.evaluation.unshaped)
    return STUDY.variant_seeds if noisy else STUDY.variant_seeds[:1]


SHAPING_PAIR = [
    method
    for method in (SETTINGS.evaluation.shaped, SETTINGS.evaluation.unshaped)
    if method in STUDY.ablation
]
if len(SHAPING_PAIR) < 2:
    SHAPING_PAIR = []


def setting_runs(wildcards):
    """(method, seed, outcome file) of every run of a setting."""
    pool, scenario, methods, bounded = SUITE_SETTINGS[wildcards.suite, wildcards.workload, wildcards.load]
    place = f"{pool}/{scenario}/load{wildcards.load}"
    runs = [
        (method, seed, f"results/outcomes/{place}/{method}/seed{seed}.parquet")
        for method in methods
        for seed in method_seeds(method)
    ]
    if bounded:
        runs.append((MAIN_BOUND, 0, f"results/bound/{place}.parquet"))
    return runs
