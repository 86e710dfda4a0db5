/** Differences between two outputs, as `hca diff` and `hca rerun` print them on a terminal. */
import { visible } from '../../base/index.ts';
import type { FigureChange, ReportDiff, RequestChange } from '../../explain/diff/index.ts';
import { rateText, timeText } from '../../explain/text/format.ts';
import { tableOf, terminalColumns } from '../../explain/text/table.ts';

const titles: Readonly<Record<ReportDiff['groups'][number]['group'], string>> = {
  results: 'Results and checks',
  times: 'Times and rates',
  operations: 'Operations',
  pcie: 'PCIe',
  caches: 'Caches',
  interrupts: 'Interrupts',
  cpu: 'CPU',
  memory: 'Memory',
  cable: 'Cable',
  switches: 'Switches',
  adapter: 'Adapter',
  faults: 'Faults',
  other: 'Other',
};

/** Number of rows shown per group. */
const rowsShown = 8;

/** @param names of both files, used as column heads */
export function diffText(diff: ReportDiff, names: readonly [string, string], showsAll: boolean): string {
  const most = showsAll ? Number.POSITIVE_INFINITY : rowsShown;
  return [
    summaryOf(diff),
    ...(diff.request.length === 0 ? [] : [requestTable(diff.request, names, most)]),
    ...diff.groups.flatMap(({ group, changes }) => {
      const beyond = changes.filter(({ isWithinTolerance }) => !isWithinTolerance);
      return beyond.length === 0 ? [] : [changeTable(titles[group], beyond, names, most)];
    }),
  ].join('\n');
}

function summaryOf({ isEqual, request, figures, unmatched = 0, changed, beyond }: ReportDiff): string {
  const asked = request.filter(({ isAsked }) => isAsked).length;
  const within = changed - beyond;
  const tolerated = within === 0 ? '' : `, ${within} more within the tolerance`;
  const sentence =
    beyond === 0 && within === 0
      ? `All ${figures} figures are equal.`
      : `${beyond} of ${figures} figures differ${tolerated}.`;
  const alone =
    unmatched === 0 ? '' : ` ${unmatched} more are of hosts, cables and flows that only one topology has.`;
  if (isEqual || asked === 0) return `${sentence}${alone}`;
  return `${sentence}${alone} ${asked === 1 ? 'One thing' : `${asked} things`} that ${asked === 1 ? 'was' : 'were'} asked for ${asked === 1 ? 'is' : 'are'} not the same.`;
}

function requestTable(
  changes: readonly RequestChange[],
  [first, second]: readonly [string, string],
  most: number,
): string {
  const rows = changes
    .slice(0, most)
    .map(({ what, name, before, after }) => [
      what === name ? what : `${what} ${wordText(name)}`,
      askedText(what, before),
      askedText(what, after),
    ]);
  return tableOf('What was asked for', ['', first, second], [...rows, ...restOf(changes.length, most)]);
}

const askedText = (what: RequestChange['what'], value: RequestChange['before']): string => {
  if (value === undefined) return what === 'parameter' ? '(default)' : '-';
  const text = wordText(String(value));
  return what === 'input' || what === 'configuration' ? text.slice(0, 16) : text;
};

function changeTable(
  title: string,
  changes: readonly FigureChange[],
  [first, second]: readonly [string, string],
  most: number,
): string {
  const figures = changes
    .slice(0, most)
    .map((change) => [
      valueText(change.path, change.before),
      valueText(change.path, change.after),
      changeText(change),
    ]);
  const head = [first, second, 'change'];
  const columns = pathColumns(head, figures);
  const rows = figures.map((row, at) => [folded(wordText(changes[at]!.path), columns), ...row]);
  return tableOf(title, ['', ...head], [...rows, ...restOf(changes.length, most)]);
}

/** Columns left for the path: at least enough for the name of a path. */
function pathColumns(head: readonly string[], rows: readonly (readonly string[])[]): number {
  const taken = head.map(
    (name, column) => 3 + Math.max(name.length, ...rows.map((row) => row[column]!.length)),
  );
  return Math.max(30, terminalColumns() - 4 - taken.reduce((sum, width) => sum + width, 0));
}

/** A path that is too long continues on the next line, after a dot. */
function folded(path: string, columns: number): string {
  if (path.length <= columns) return path;
  const at = path.lastIndexOf('.', columns - 1) + 1 || columns;
  return `${path.slice(0, at)}\n${folded(`  ${path.slice(at)}`, columns)}`;
}

const restOf = (count: number, most: number): string[][] =>
  count > most ? [[`… and ${count - most} more: --all`]] : [];

function valueText(path: string, value: FigureChange['before']): string {
  if (value === undefined) return '-';
  if (typeof value !== 'number') return wordText(String(value)).slice(0, 24);
  if (/Ps(\.|$)/.test(path)) return timeText(value);
  if (path.endsWith('BytesPerSecond') || path.endsWith('bytesPerSecond')) return rateText(value);
  if (Math.abs(value) < 1) return value.toLocaleString('en-US', { maximumSignificantDigits: 4 });
  const digits = Number.isInteger(value) || Math.abs(value) >= 1e4 ? 0 : 4;
  return value.toLocaleString('en-US', { maximumFractionDigits: digits });
}

/** `+12.5 %`; a growth of more than tenfold is printed as a factor. */
function changeText({ change, before, after }: FigureChange): string {
  if (change === null) {
    if (before === undefined) return 'new';
    if (after === undefined) return 'gone';
    return before === 0 ? 'from 0' : '';
  }
  if (change >= 9) return `× ${(change + 1).toPrecision(3)}`;
  const percent = change * 100;
  const digits = Math.abs(percent) < 0.1 ? percent.toPrecision(2) : percent.toFixed(1);
  return `${percent > 0 ? '+' : ''}${digits} %`;
}

/** Texts in a file may contain any characters. */
const wordText = (text: string): string => visible(text);
