# The front door: `snakemake --cores 8` runs the whole study. The workflow itself is in workflow/.


include: "workflow/Snakefile"


workflow.default_target = "all"
