import { diagramStyle } from '../diagram/index.ts';

/** The style of all pages: follows the reader's light or dark scheme, works from 400 pixels on, fixes no width. */
export const style = `
:root { color-scheme: light dark; --ink: #1b1b1b; --dim: #595959; --paper: #fff; --card: #f4f5f7; --line: #d5d8dc; --grid: #0000001a;
  --busy: #2471a3; --stalled: #c0392b; --idle: #e3e6ea;
  --c0: #2471a3; --c1: #b9770e; --c2: #1e8449; --c3: #8e44ad; --c4: #c0392b; --c5: #117a65; --c6: #7d6608; --c7: #5d6d7e; --c8: #a04000; --c9: #1a5276; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --dim: #a9adb3; --paper: #15181c; --card: #1f242a; --line: #3a4149; --grid: #ffffff22;
  --busy: #5dade2; --stalled: #ec7063; --idle: #2f363e;
  --c0: #5dade2; --c1: #f5b041; --c2: #58d68d; --c3: #bb8fce; --c4: #ec7063; --c5: #48c9b0; --c6: #d4c04a; --c7: #aab7b8; --c8: #e59866; --c9: #7fb3d5; } }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 1.5rem auto; max-width: 100rem; padding: 0 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.2; } h2 { margin: 2.2rem 0 0.4rem; font-size: 1.25rem; } h3 { margin: 0.9rem 0 0.3rem; font-size: 1rem; }
p { margin: 0.4rem 0; } p, li { max-width: 76rem; } .dim { color: var(--dim); } code { font-size: 0.92em; }
.scroll { overflow-x: auto; margin: 0.1rem 0 1.4rem; container-type: inline-size; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; } .caption { margin-top: 1rem; }
td, th { padding: 0.12rem 0.7rem; text-align: right; vertical-align: top; border-bottom: 1px solid var(--line); white-space: nowrap; font-weight: normal; }
td:is(.said, .worded), thead th:is(.said, .worded) { text-align: left; white-space: pre-line; min-width: 14rem; } :is(td, thead th).worded { min-width: 9rem; overflow-wrap: normal; }
thead th { font-weight: 600; vertical-align: bottom; white-space: normal; overflow-wrap: normal; } th[scope=row], thead th:first-child { text-align: left; position: sticky; left: 0; background: var(--paper); } th[scope=row] { white-space: normal; overflow-wrap: normal; min-width: 9rem; }
.bar { display: flex; height: 0.85rem; width: 100%; background: var(--idle); border-radius: 2px; overflow: hidden; } .bar span { display: block; height: 100%; }
.busy { background: var(--busy); } .stalled { background: var(--stalled); } .idle { background: var(--idle); }
${Array.from({ length: 10 }, (_, index) => `.c${index} { background: var(--c${index}); }`).join(' ')}
.key { display: inline-flex; align-items: center; gap: 0.35rem; margin-right: 0.9rem; } .key i { width: 0.8rem; height: 0.8rem; border-radius: 2px; display: inline-block; }
.life { display: grid; grid-template-columns: minmax(6rem, max-content) 1fr; gap: 0.35rem 0.8rem; align-items: center; margin: 0.6rem 0; }
.diagram { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 17rem), 1fr)); gap: 0.8rem; }
.diagram > div > .unit { margin-bottom: 0.8rem; } .unit { border: 1px solid var(--line); border-radius: 6px; padding: 0.5rem 0.7rem; background: var(--card); } .unit h3 { margin: 0 0 0.3rem; }
.block { margin: 0.4rem 0; font-size: 0.9rem; } .block span.why { color: var(--dim); } .good { color: var(--c2); } .bad { color: var(--stalled); font-weight: 600; }
.chart { min-height: 260px; margin-top: 2rem; } .chart .upward { color: var(--dim); font-size: 13px; } .chart .across { color: var(--dim); font-size: 13px; text-align: center; }
.marks { position: relative; font-size: 12px; line-height: 1.35; color: var(--dim); } .marks > * { position: absolute; } .marks > i { bottom: 0; border-left: 1px dashed var(--dim); }
.marks > :is(a, span) { z-index: 1; width: max-content; max-width: 100%; padding: 0 4px; background: var(--paper); } .marks > [hidden] { display: none; }
.tip { position: absolute; z-index: 10; width: max-content; max-width: 100%; padding: 0.2rem 0.5rem; border: 1px solid var(--line); border-radius: 4px; background: var(--card); font-size: 13px; line-height: 1.35; pointer-events: none; }
.tip[hidden] { display: none; } .tip > :first-child { color: var(--dim); }
a.opens { color: inherit; text-decoration: underline dotted 1px; text-underline-offset: 3px; } a.opens:hover { text-decoration-style: solid; }
${diagramStyle}
svg.data-path.down { display: none; } @media (max-width: 75rem) { svg.data-path.across { display: none; } svg.data-path.down { display: block; max-width: 34rem; margin: 0 auto; } }
details:target > summary { background: var(--card); } .hint { color: var(--dim); font-size: 13px; margin: 0 0 1rem; }
.u-legend { font-size: 14px; } .u-legend :is(th, td) { white-space: normal; overflow-wrap: normal; } .u-legend .u-value { display: inline-block; min-width: 4.5em; text-align: left; }
.ramp { white-space: nowrap; } .ramp i { display: inline-block; width: 5rem; height: 0.7rem; border-radius: 2px; }
.map { container-type: inline-size; } .heat thead th, .heat thead td { text-align: center; } .heat th { padding: 0.15em 0.3em; } .heat thead th:first-child, .heat th[scope=row] { white-space: normal; overflow-wrap: normal; min-width: 0; }
.heat tbody td { text-align: center; border: 1px solid var(--paper); padding: 0; position: relative; } .heat td > a, .heat td > span { display: block; padding: 0.15em 0.3em; text-decoration: none; } .heat td > a:is(:hover, :focus-visible) { outline: 2px solid var(--ink); } .heat td.none { color: var(--dim); }
pre { font-size: 0.86em; line-height: 1.35; margin: 0.4rem 0; white-space: pre-wrap; } details { margin: 0.8rem 0; } summary { cursor: pointer; font-weight: 600; }
@media (max-width: 30rem) { body { margin: 1rem auto; padding: 0 0.6rem; } td, th { padding: 0.12rem 0.45rem; } }
`;
