/** The report of a served machine as tables for a terminal, made from the JSON alone. */

import { countText, timeText } from '../../explain/text/format.ts';
import {
  cacheTable,
  checksLine,
  faultLines,
  nicTable,
  pcieTable,
  refusalTitles,
  transportTable,
  wireTable,
} from '../../explain/text/render.ts';
import { stagesShown } from '../../explain/text/stages-shown.ts';
import { tableOf } from '../../explain/text/table.ts';
import { refusalKindOf } from '../../hw/hca/index.ts';
import type { Defect } from './defect.ts';
import type {
  DevicesReport,
  PeerReport,
  ServedNodeReport,
  ServeReport,
  StrangerReport,
} from './serve-report.ts';

/** All tables, one below another, without empty ones. */
export const renderServeReport = (report: ServeReport): string =>
  `${renderDevicesReport(report)}\n${timeLines(report)}`;

/** The same of the devices alone, without their times' relation to the wall clock. */
export function renderDevicesReport(report: DevicesReport): string {
  const { nodes, peer, checks, defects } = report;
  const allNodes = peer === undefined ? nodes : [...nodes, peer.node];
  return [
    commandTable(nodes),
    accessTable(nodes),
    doorbellTable(nodes),
    pcieTable(allNodes),
    cacheTable(allNodes),
    ...(peer?.node.nic === undefined ? [] : [nicTable([[1, peer.node.nic]])]),
    ...transportTable(allNodes.map(({ hca }) => ({ hca: { ...hca, violations: {} } }))),
    interruptTable(nodes),
    ...(report.wire.some(({ packets }) => packets > 0) ? [wireTable(report)] : []),
    operationTable(report),
    oddities(nodes),
    notModelled(nodes),
    ...(peer === undefined ? [] : peerLines(peer)),
    ...(report.stranger === undefined ? [] : [strangerLine(report.stranger)]),
    ...faultLines(report.faults),
    checksLine(checks),
    ...defects.map(defectText),
  ]
    .filter((text) => text !== '')
    .join('\n');
}

/** Named end 1 in the table of the cable. */
function strangerLine({ clients, framesFromClient, framesToClient, ...lost }: StrangerReport): string {
  const { refused, unreadFrames, unfitFrames, forgottenFrames, discardedFrames } = lost;
  const { holds, expiredHolds, heldMs } = lost;
  const expired = expiredHolds === 0 ? '' : `, ${countText(expiredHolds)} of them until they expired`;
  const held =
    holds === 0
      ? ''
      : `; time stood still ${countText(holds)} times for ${Math.round(heldMs)} ms until they had read${expired}`;
  const odd = [
    [refused, 'refused'],
    [unreadFrames, 'frames not taken'],
    [unfitFrames, 'frames that no cable carries'],
    [forgottenFrames, 'frames that waited when they went'],
    [discardedFrames, 'frames while the link was down'],
  ].flatMap(([count, what]) => (count === 0 ? [] : [`, ${countText(Number(count))} ${what}`]));
  return (
    `At the other end of the cable (1): ${countText(clients)} plugged in; ${countText(framesFromClient)} frames of theirs, ` +
    `${countText(framesToClient)} to them${odd.join('')}${held}`
  );
}

const logLinesShown = 20;

/** Outcome of the simulated host's program, and the last log lines of the program and its kernel. */
function peerLines({ program, log }: PeerReport): string[] {
  const { program: name, outcome, endedPs, result, error, stack = '', waitsIn } = program;
  const ended = endedPs === undefined ? '' : ` after ${timeText(endedPs)} of simulated time`;
  const what = {
    running: `has not ended: ${waitsIn ?? 'it runs'}`,
    ended: `ended${ended}${result === undefined ? '' : `: ${JSON.stringify(result)}`}`,
    failed: `FAILED${ended}: ${error}`,
  }[outcome];
  return [
    ...log
      .slice(-logLinesShown)
      .map(({ atPs, program: source, text }) => `Peer, ${timeText(atPs)}, ${source}: ${text}`),
    [`Program ${name} of the peer ${what}`, ...placesOf(stack).map((line) => `    ${line}`)].join('\n'),
  ];
}

/** Includes the place in the code at which it was thrown. */
function defectText({ node, access, atPs, message, stack, causes }: Defect): string {
  return [
    `A DEFECT OF THE EMULATOR at HCA ${node}, ${atPs} ps, by ${access}: ${message}`,
    ...causes.map((cause) => `  caused by: ${cause.message}`),
    ...placesOf(causes.at(-1)?.stack ?? stack).map((line) => `    ${line}`),
  ].join('\n');
}

const placesShown = 5;
const placesOf = (stack: string): string[] =>
  stack
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line.startsWith('at '))
    .slice(0, placesShown);

function commandTable(nodes: readonly ServedNodeReport[]): string {
  const rows = nodes.flatMap(({ hca }, node) =>
    Object.entries(hca.commands).map(([name, { count, takenPs }]) => [
      `hca ${node} ${name}`,
      countText(count),
      timeText(takenPs),
      timeText(Math.round(takenPs / count)),
    ]),
  );
  return tableOf('Commands: simulated time on the device', ['command', 'count', 'in all', 'each'], rows);
}

function accessTable(nodes: readonly ServedNodeReport[]): string {
  const rows = nodes.flatMap(({ accesses }, node) =>
    [['configuration', accesses.configuration] as const, ...Object.entries(accesses.registers)].map(
      ([name, { reads, writes }]) => [`hca ${node} ${name}`, countText(reads), countText(writes)],
    ),
  );
  return tableOf('Register accesses of the guest (BAR0)', ['register', 'reads', 'writes'], rows);
}

function doorbellTable(nodes: readonly ServedNodeReport[]): string {
  const rows = nodes.flatMap(({ accesses }, node) =>
    Object.entries(accesses.doorbells).map(([name, { reads, writes }]) => [
      `hca ${node} ${name}`,
      countText(reads),
      countText(writes),
    ]),
  );
  return rows.length === 0 ? '' : tableOf('Doorbells (BAR2)', ['place', 'reads', 'writes'], rows);
}

function interruptTable(nodes: readonly ServedNodeReport[]): string {
  const rows = nodes.flatMap(({ interrupts, intx }, node) => [
    ...interrupts.map((row) => [
      `hca ${node} vector ${row.vector}`,
      row.requested,
      row.moderated,
      row.masked,
      row.coalesced,
      row.sent,
      row.delivered,
      row.raised,
    ]),
    ...(intx.asserted === 0
      ? []
      : [[`hca ${node} INTx`, '', '', '', '', intx.asserted, intx.asserted, intx.raised]]),
  ]);
  const head = ['vector', 'requested', 'moderated', 'masked', 'coalesced', 'sent', 'delivered', 'raised'];
  return rows.length === 0 ? '' : tableOf('Interrupts per vector', head, rows);
}

function operationTable({ operations }: DevicesReport): string {
  const entries = Object.entries(operations);
  if (entries.length === 0) return '';
  const stages = stagesShown(entries.map(([, operation]) => operation)).filter((stage) => stage !== 'taken');
  const rows = entries.map(([name, { count, failed, milestonesPs }]) => [
    name,
    countText(count),
    countText(failed),
    ...stages.map((stage) => (count === 0 ? '-' : timeText(Math.round((milestonesPs[stage] ?? 0) / count)))),
  ]);
  return tableOf(
    'Send operations: where the device spent the time of each (mean)',
    ['operation', 'count', 'failed', ...stages],
    rows,
  );
}

/** Registers and commands that the guest's software used and the model lacks. */
function notModelled(nodes: readonly ServedNodeReport[]): string {
  const lines = nodes.flatMap(({ notModelled: { registers, commands } }, node) => {
    const places = Object.entries(registers).map(
      ([place, { reads, writes }]) => `${place} (${countText(reads)} reads, ${countText(writes)} writes)`,
    );
    const refused = Object.entries(commands).map(([name, count]) => `${name} (${countText(count)})`);
    return [...places, ...refused].map((text) => `hca ${node}: ${text}`);
  });
  return lines.length === 0 ? '' : `Not modelled, but asked for by the guest   ${lines.join(';  ')}`;
}

/** Lines of rules that the guest broke, then of requests and packets that the device refused without a broken rule, one for each kind. */
function oddities(nodes: readonly ServedNodeReport[]): string {
  const { rule, ...blameless } = refusalTitles;
  const lines = [
    countLine(`${capitalised(rule)}, by guest or peer`, nodes, ({ accesses, hca, deviceFaults }) => {
      const { failedLoads, givenUpLoads, droppedStores, tableStores } = accesses;
      const counts = { failedLoads, givenUpLoads, droppedStores, tableStores };
      return [
        ...Object.entries(counts),
        ...refusalsOf(hca.violations, 'rule'),
        ...Object.entries(deviceFaults),
      ];
    }),
    ...Object.entries(blameless).map(([kind, title]) =>
      countLine(capitalised(title), nodes, ({ hca }) => refusalsOf(hca.violations, kind)),
    ),
  ];
  return lines.filter((line) => line !== '').join('\n');
}

const refusalsOf = (counts: Readonly<Record<string, number>>, kind: string): [string, number][] =>
  Object.entries(counts).filter(([name]) => refusalKindOf(name) === kind);

const capitalised = (text: string): string => `${text[0]!.toUpperCase()}${text.slice(1)}`;

/** A line with the nonzero counts of each HCA; empty if all are zero. */
function countLine(
  title: string,
  nodes: readonly ServedNodeReport[],
  countsOf: (node: ServedNodeReport) => readonly (readonly [name: string, count: number])[],
): string {
  const parts = nodes.flatMap((node, at) => {
    const some = countsOf(node).filter(([, count]) => count > 0);
    return some.length === 0
      ? []
      : [`hca ${at}: ${some.map(([name, count]) => `${name} ${countText(count)}`).join(', ')}`];
  });
  return parts.length === 0 ? '' : `${title}   ${parts.join(';  ')}`;
}

function timeLines({ elapsedPs, followedPs, timeScale, meaning, run }: ServeReport): string {
  return (
    `Simulated ${timeText(elapsedPs)}, of which ${timeText(followedPs)} followed the wall clock (scale ${timeScale}); ` +
    `${(run.wallMs / 1000).toFixed(1)} s of wall clock, ${(run.workMs / 1000).toFixed(1)} s of them on the model.\n` +
    `Measured: ${meaning.measured}\nNot measured: ${meaning.notMeasured}${meaning.peer === undefined ? '' : `\nOf the peer: ${meaning.peer}`}`
  );
}
