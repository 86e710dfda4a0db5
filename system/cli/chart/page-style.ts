/** The style sheet of a page: light or dark as the reader has it, no wider than the window. */
export const pageStyle = `
:root { color-scheme: light dark; --ink: #1b1b1b; --paper: #fff; --faint: #555; --rule: #ddd; --grid: #0000001a; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e6; --paper: #16181c; --faint: #a8a8a8; --rule: #3a3d42; --grid: #ffffff22; }
}
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto; max-width: 62rem; padding: 0 1rem; }
h1 { font-size: clamp(1.25rem, 4.5vw, 1.9rem); line-height: 1.25; }
h1, h2, p { overflow-wrap: anywhere; }
.chart { min-height: 260px; }
.chart .u-title, .chart .u-legend { overflow-wrap: anywhere; }
.scroll { overflow-x: auto; margin: 1rem 0 2.5rem; }
table { border-collapse: separate; border-spacing: 0; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding-bottom: 0.3rem; }
td, th { padding: 0.15rem 0.8rem; text-align: right; border-bottom: 1px solid var(--rule); white-space: nowrap; }
th { white-space: normal; vertical-align: bottom; }
.scroll td:first-child, .scroll th:first-child { text-align: left; position: sticky; left: 0; background: var(--paper); }
.heat th[scope=col] { text-align: center; }
.heat td { text-align: center; border: 1px solid var(--paper); }
.heat td.none { color: var(--faint); }
.u-legend { font-size: 14px; }
.u-legend .u-value { display: inline-block; min-width: 4.5em; text-align: left; }
.hint { color: var(--faint); font-size: 13px; margin: 0 0 1rem; }
@media (max-width: 30rem) { body { margin: 1rem auto; padding: 0 0.6rem; } td, th { padding: 0.15rem 0.45rem; } }
`;
