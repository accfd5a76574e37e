-- The workspace database, version 1. Every later version is a step in migrations.py.
-- Large tables have no index: rows of one artifact lie together and DuckDB's zone maps skip the rest.
-- They hold an integer ``artifact`` so that nothing in them changes when the SHA-256 becomes known.

CREATE TABLE schema_version (version INTEGER NOT NULL);

CREATE SEQUENCE artifact_keys;

CREATE TABLE artifacts (
    key INTEGER PRIMARY KEY,
    digest VARCHAR,                -- SHA-256, NULL until hashed
    format VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    size_bytes BIGINT NOT NULL,
    files INTEGER NOT NULL,
    producer VARCHAR NOT NULL,
    tensors BIGINT NOT NULL,
    nodes BIGINT NOT NULL,
    parameters BIGINT NOT NULL,
    verdict VARCHAR NOT NULL,      -- worst severity of a finding: error, warning, info or ok
    findings BIGINT NOT NULL,
    mark VARCHAR NOT NULL          -- checksum over the rows below, so that reopening writes nothing
);

CREATE TABLE locations (           -- where an artifact was opened; one path, size, time and inode each
    quick VARCHAR PRIMARY KEY,
    artifact INTEGER NOT NULL,
    path VARCHAR NOT NULL,
    opened_at DOUBLE NOT NULL,     -- seconds since 1970
    uploaded BOOLEAN NOT NULL
);

CREATE TABLE tensors (
    artifact INTEGER NOT NULL,
    idx INTEGER NOT NULL,
    name VARCHAR NOT NULL,
    dtype VARCHAR NOT NULL,
    encoding VARCHAR NOT NULL,
    shape BIGINT[] NOT NULL,
    elements BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    source INTEGER NOT NULL,       -- index of the file, -1 where embedded or missing
    start BIGINT NOT NULL,
    stop BIGINT NOT NULL,
    role VARCHAR NOT NULL,
    graph INTEGER NOT NULL,
    storage INTEGER NOT NULL,
    quantized BOOLEAN NOT NULL,
    problem VARCHAR NOT NULL
);

CREATE TABLE nodes (
    artifact INTEGER NOT NULL,
    graph INTEGER NOT NULL,
    idx INTEGER NOT NULL,
    row INTEGER NOT NULL,          -- number over all graphs of the artifact
    name VARCHAR NOT NULL,
    op_type VARCHAR NOT NULL,
    domain VARCHAR NOT NULL,
    scope VARCHAR NOT NULL,
    inputs INTEGER[] NOT NULL,
    outputs INTEGER[] NOT NULL
);

CREATE TABLE "values" (
    artifact INTEGER NOT NULL,
    graph INTEGER NOT NULL,
    idx INTEGER NOT NULL,
    row INTEGER NOT NULL,
    name VARCHAR NOT NULL,
    dtype VARCHAR,
    shape VARCHAR[],               -- sizes and symbols as text, '?' where unknown; NULL without a rank
    producer INTEGER NOT NULL,
    consumers INTEGER NOT NULL,    -- how many uses
    tensor INTEGER NOT NULL,
    is_input BOOLEAN NOT NULL,
    is_output BOOLEAN NOT NULL
);

CREATE TABLE tensor_stats (
    artifact INTEGER NOT NULL,
    idx INTEGER NOT NULL,
    count BIGINT, nan BIGINT, pos_inf BIGINT, neg_inf BIGINT, zero BIGINT, subnormal BIGINT,
    min DOUBLE, max DOUBLE, mean DOUBLE, std DOUBLE, absmax DOUBLE, l1 DOUBLE, l2 DOUBLE,
    quantiles DOUBLE[],            -- in the order of core.statistics.types.QUANTILES
    edges DOUBLE[], counts BIGINT[],
    exact BOOLEAN, error DOUBLE
);

CREATE TABLE traces (
    id VARCHAR PRIMARY KEY,
    artifact INTEGER NOT NULL,
    created_at DOUBLE NOT NULL,
    actor VARCHAR NOT NULL,
    approved_at DOUBLE NOT NULL,
    fingerprint VARCHAR NOT NULL,
    engine VARCHAR NOT NULL,
    provider VARCHAR NOT NULL,
    status VARCHAR NOT NULL,
    reason VARCHAR NOT NULL,
    elapsed_s DOUBLE NOT NULL,
    peak_rss_bytes BIGINT NOT NULL,
    optimisation VARCHAR NOT NULL,
    latency_optimisation VARCHAR NOT NULL,
    inputs VARCHAR NOT NULL,       -- JSON
    limits VARCHAR NOT NULL,       -- JSON
    held VARCHAR NOT NULL,         -- JSON
    findings VARCHAR NOT NULL      -- JSON
);

CREATE TABLE trace_values (
    trace VARCHAR NOT NULL,
    row INTEGER NOT NULL,          -- order of execution
    id VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    node VARCHAR NOT NULL,
    step INTEGER NOT NULL,
    dtype VARCHAR NOT NULL,
    shape BIGINT[] NOT NULL,
    start BIGINT NOT NULL,         -- bytes in the spool's values.bin, -1 where not stored
    stop BIGINT NOT NULL,
    reason VARCHAR NOT NULL,
    count BIGINT, nan BIGINT, pos_inf BIGINT, neg_inf BIGINT, zero BIGINT, subnormal BIGINT,
    min DOUBLE, max DOUBLE, mean DOUBLE, std DOUBLE, absmax DOUBLE, l1 DOUBLE, l2 DOUBLE,
    quantiles DOUBLE[],
    edges DOUBLE[], counts BIGINT[],
    exact BOOLEAN, error DOUBLE
);

CREATE TABLE trace_nodes (
    trace VARCHAR NOT NULL,
    row INTEGER NOT NULL,
    id VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    op_type VARCHAR NOT NULL,
    latency_us DOUBLE,
    provider VARCHAR NOT NULL
);

CREATE TABLE assigned_inputs (
    artifact INTEGER NOT NULL,
    name VARCHAR NOT NULL,
    recipe VARCHAR NOT NULL        -- JSON of core.inputs.recipe.Recipe
);

CREATE TABLE jobs (                -- jobs that ended; running ones live in the process
    id VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    title VARCHAR NOT NULL,
    artifact VARCHAR NOT NULL,
    actor VARCHAR NOT NULL,
    state VARCHAR NOT NULL,
    error VARCHAR NOT NULL,
    started_at DOUBLE NOT NULL,
    finished_at DOUBLE NOT NULL
);

CREATE TABLE region_edits (        -- what persons changed about regions, applied in order of changed_at and row
    artifact INTEGER NOT NULL,
    row INTEGER NOT NULL,
    edit VARCHAR NOT NULL,         -- JSON of core.structure.edits.RegionEdit
    actor VARCHAR NOT NULL,
    changed_at DOUBLE NOT NULL     -- seconds since 1970
);

CREATE TABLE node_data (           -- numbers for operators that a person brought, Model Explorer's form
    artifact INTEGER NOT NULL,
    name VARCHAR NOT NULL,
    data VARCHAR NOT NULL,         -- JSON
    changed_at DOUBLE NOT NULL
);
