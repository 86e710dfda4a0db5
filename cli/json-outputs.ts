/**
 * JSON outputs of the commands: one declaration each. Every output has the name and version of its schema in `schema`.
 * `npm run schemas` generates the published schemas (schemas/*.schema.json) from these declarations.
 *
 * Adding a field needs no new version. Removing a field or changing its name, type or meaning needs one.
 */

import type { FoldResult, ValueResult } from '../experiments/cross-validation/index.ts';
import type { CompareRow } from '../experiments/runs/compare-run.ts';
import type { FailedFabric } from '../experiments/runs/fabric-failure.ts';
import type { FabricRow } from '../experiments/runs/fabric-run.ts';
import type { PerfRow } from '../experiments/runs/perf-run.ts';
import type { SweepHeader, SweepRow } from '../experiments/sweep/index.ts';
import type { GroupResult, RowResult } from '../experiments/validate/index.ts';
import type { DeviceQuery, PerfTestName } from '../experiments/workloads/index.ts';
import type { ReportDiff } from '../explain/diff/index.ts';
import type { Explanation } from '../explain/timeline/index.ts';
import type { GuestBudget, GuestReport, LinuxReport, ScenarioOutcome } from '../guests/linux/index.ts';
import type { ServeReport } from '../guests/serve/index.ts';
import type { FaultListing } from '../machine/faults/index.ts';
import type { Report, RunFacts } from '../machine/index.ts';
import type { ProfileListing } from '../machine/profile/index.ts';
import type { Coverage, Finding, ServedKind, ServedStory, Story, StoryOutcome } from '../torture/index.ts';
import type { CutoffResult } from './cutoff/cutoff-report.ts';
import type { Invocation } from './invocation.ts';
import type { MoveOutcome } from './move/move-page.ts';
import type { PlotPage } from './plot/plot-page.ts';
import type { WhyResult } from './why/why.ts';
import type { WireResult } from './wire/wire-json.ts';

/** `hca move --report`: the report of the machine, and the data to repeat the run. */
export interface ReportOutput extends Report {
  /** Left out by programs that use the library. */
  readonly invocation?: Invocation;
}

/** `hca move --report out.json` also writes `out.run.json`: how the run was computed. */
export interface RunFactsOutput extends RunFacts {
  readonly schema: 'hca-run/1';
}

/** `hca move --json`: the bytes moved by each leg, the comparison of the paths, and the machine's report. */
interface MoveOutput extends MoveOutcome {
  readonly schema: 'hca-move/1';
  readonly invocation: Invocation;
  readonly comparison: readonly CompareRow[];
  readonly report: Report;
}

/** `hca perf --json`: a row for each size. */
interface PerfOutput {
  readonly schema: 'hca-perf/2';
  readonly invocation: Invocation;
  readonly test: PerfTestName;
  readonly configHash: string;
  readonly rows: readonly PerfRow[];
}

/** `hca compare --json`: a row for each path and size. */
interface CompareOutput {
  readonly schema: 'hca-compare/1';
  readonly invocation: Invocation;
  readonly configHash: string;
  readonly rows: readonly CompareRow[];
}

/** `hca cutoff --json`: latencies over sizes, and the sizes at which the ways to send a message cross. */
interface CutoffOutput {
  readonly schema: 'hca-cutoff/1';
  readonly invocation: Invocation;
  readonly configHash: string;
  readonly rendezvousBy: 'read' | 'write';
  readonly sizes: readonly number[];
  readonly results: readonly CutoffResult[];
}

/** `hca fabric --json`: each flow, each output of a switch, and the machine's report. */
interface FabricOutput extends FabricRow {
  readonly schema: 'hca-fabric/1';
  readonly invocation: Invocation;
  readonly configHash: string;
  /** The fault of the results; left out if they are right. */
  readonly failure?: string;
}

/** `hca fabric --json` of a run that a failure ended. */
interface FabricFailureOutput extends FailedFabric {
  readonly schema: 'hca-fabric-failure/1';
  readonly invocation: Invocation;
  readonly configHash: string;
}

/** `hca devinfo --json`: the attributes of the device. */
interface DevinfoOutput extends DeviceQuery {
  readonly schema: 'hca-devinfo/1';
  readonly invocation: Invocation;
}

/** `hca profiles --json`: the named profiles and every parameter. */
interface ProfilesOutput extends ProfileListing {
  readonly schema: 'hca-profiles/1';
}

/** `hca faults --json`: every injectable fault. */
interface FaultsOutput {
  readonly schema: 'hca-faults/1';
  readonly faults: readonly FaultListing[];
}

/** `hca torture --json` for many stories: their coverage, and the stories with findings. */
interface TortureOutput {
  readonly schema: 'hca-torture/1';
  readonly invocation: Invocation;
  readonly firstSeed: number;
  /** Wall-clock time. */
  readonly seconds: number;
  readonly stories: number;
  readonly refused: number;
  readonly coverage: Coverage;
  readonly failures: readonly Pick<StoryOutcome, 'seed' | 'climate' | 'findings'>[];
}

/** `hca torture --json` for one story, reduced by `--shrink`. */
export interface StoryOutput {
  readonly schema: 'hca-torture-story/1';
  readonly invocation: Invocation;
  readonly story: Story;
  readonly findings: readonly Finding[];
  /** Why the machine rejects the story's configuration; null if it accepts it. */
  readonly refused: string | null;
  /** Number of stories played to reduce it. */
  readonly tries?: number;
}

/** Numbers of times that commands accepted and rejected a value. */
interface FieldEnds {
  readonly accepted: number;
  readonly refused: number;
}

/** `hca torture --served --json`. */
interface ServedTortureOutput {
  readonly schema: 'hca-torture-served/1';
  readonly invocation: Invocation;
  readonly firstSeed: number;
  /** Wall-clock time, like longestTurnMs. */
  readonly seconds: number;
  readonly stories: number;
  readonly counts: Readonly<Record<ServedKind, number>>;
  readonly longestTurnMs: number;
  /** Number of times that each command ended with each status. */
  readonly commands: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** Unusual values of mailbox fields, by the status of their command. */
  readonly fields: Readonly<Record<string, FieldEnds>>;
  readonly failures: readonly Pick<ServedStory, 'seed' | 'findings'>[];
}

/** `hca serve --json` and `--report`. */
type ServeOutput = ServeReport;

/** `hca guest --json` and `--report`. */
type GuestOutput = GuestReport;

/** `hca guest --write-budget`; read by `--budget`. */
type GuestBudgetOutput = GuestBudget;

/** `hca guest --scenario --json` and `--report`, and those of `hca linux`. */
export interface ScenarioOutput extends ScenarioOutcome {
  readonly schema: 'hca-guest-scenario/1';
  /** Versions of the programs that ran, by name. */
  readonly versions: Readonly<Record<string, string>>;
}

/** `hca linux --json` and `--report`. */
type LinuxOutput = LinuxReport;

/** `hca diff --json`. */
type DiffOutput = ReportDiff;

/** `hca rerun --json`. */
interface RerunOutput {
  readonly schema: 'hca-rerun/1';
  /** The repeated command. */
  readonly command: readonly string[];
  readonly versions: { readonly before: string; readonly after: string };
  readonly isEqual: boolean;
  readonly differences: ReportDiff;
}

/** `hca sweep --json`: every point that has run. */
interface SweepOutput extends Omit<SweepHeader, 'schema'> {
  readonly schema: 'hca-sweep-results/1';
  readonly rows: readonly SweepRow[];
}

/** `hca plot --json`: the drawn data. */
interface PlotOutput extends PlotPage {
  readonly schema: 'hca-plot/1';
  /** Hash of the sweep, and the version of the emulator that ran it. */
  readonly sweep: string;
  readonly version: string;
}

/** `hca ask --json` without a name: the available questions. */
interface StudiesOutput {
  readonly schema: 'hca-studies/1';
  readonly questions: readonly { readonly name: string; readonly question: string }[];
}

/** `hca ask NAME --json`: three sentences and their points. */
interface AskOutput extends Omit<SweepHeader, 'schema'> {
  readonly schema: 'hca-ask/1';
  readonly name: string;
  readonly question: string;
  readonly answer: readonly string[];
  readonly rows: readonly SweepRow[];
}

/** `hca validate --json`: each row of the measurements next to the model's figure. */
interface ValidateOutput {
  readonly schema: 'hca-validate/1';
  /** Changed parameters. */
  readonly set: Readonly<Record<string, number | string | boolean>>;
  readonly groups: readonly GroupResult[];
  readonly rows: readonly RowResult[];
}

/** `hca validate --cross-validate --json`: fitted values without some rows, judged on these. */
interface CrossValidationOutput {
  readonly schema: 'hca-cross-validation/1';
  readonly invocation: Invocation;
  /** Rows that run on the card. */
  readonly rows: number;
  readonly simulations: number;
  readonly values: readonly ValueResult[];
  readonly folds: readonly FoldResult[];
}

/** `hca explain --json`: one operation, step by step. */
interface ExplainOutput extends Explanation {
  readonly schema: 'hca-explain/1';
  readonly invocation: Invocation;
  readonly configHash: string;
}

/** `hca why --json`: why requests failed or never completed. */
interface WhyOutput extends WhyResult {
  readonly schema: 'hca-why/1';
  readonly invocation: Invocation;
  readonly configHash: string;
}

/** `hca wire --json`: a capture as conversations. */
interface WireOutput extends WireResult {
  readonly schema: 'hca-wire/1';
}

/** Any JSON output of a command. */
export type JsonOutput =
  | ReportOutput
  | RunFactsOutput
  | MoveOutput
  | PerfOutput
  | CompareOutput
  | CutoffOutput
  | FabricOutput
  | FabricFailureOutput
  | DevinfoOutput
  | ProfilesOutput
  | FaultsOutput
  | TortureOutput
  | StoryOutput
  | ServedTortureOutput
  | ServeOutput
  | GuestOutput
  | GuestBudgetOutput
  | ScenarioOutput
  | LinuxOutput
  | DiffOutput
  | RerunOutput
  | SweepOutput
  | PlotOutput
  | StudiesOutput
  | AskOutput
  | ValidateOutput
  | CrossValidationOutput
  | ExplainOutput
  | WhyOutput
  | WireOutput;
