/** A run of `hca fabric` as tables for a terminal, and in sentences. */
import { type FlowRow, nodeNameOf, type OutputRow } from '../../experiments/runs/fabric-figures.ts';
import type { FabricRow } from '../../experiments/runs/fabric-run.ts';
import { serversOf, workersOf } from '../../experiments/workloads/index.ts';
import { bytesText, countedText, countText, rateText, timeText } from '../../explain/text/format.ts';
import { tableOf } from '../../explain/text/table.ts';

/** Rows of a table in a terminal; a page has all. */
const rowsShown = 16;

export const flowHead = ['flow', 'rate', 'messages: median', '99 %', 'longest', 'ended after'] as const;

export const flowCells = ({
  from,
  to,
  bytesPerSecond,
  medianPs,
  p99Ps,
  maxPs,
  durationPs,
}: FlowRow): string[] => [
  `host ${from} to ${to}`,
  rateText(bytesPerSecond),
  timeText(medianPs),
  timeText(p99Ps),
  timeText(maxPs),
  timeText(durationPs),
];

export const outputHead = ['output', 'to', 'packets', 'sends', 'waits for far end', 'held as input'] as const;

export const outputCells = (row: OutputRow, report: FabricRow['report']): string[] => [
  `switch ${row.switch} port ${row.port}`,
  nodeNameOf(report, row.to),
  countText(row.packets),
  percentText(row.busyShare),
  percentText(row.farWaitShare),
  bytesText(row.bufferedBytesMax),
];

const percentText = (share: number): string => `${(100 * share).toFixed(1)} %`;

/** The slowest flows first. */
export function flowTable({ args, flows }: FabricRow): string {
  const slowest = flows.toSorted((left, right) => left.bytesPerSecond - right.bytesPerSecond);
  const title = `${countedText(flows.length, 'flow')} of ${countedText(args.messages, 'message')} of ${bytesText(args.sizeBytes)}${restText(flows.length, 'slowest')}`;
  return tableOf(title, flowHead, slowest.slice(0, rowsShown).map(flowCells));
}

/** The busiest outputs first. */
export function outputTable({ report, outputs }: FabricRow): string {
  const busiest = outputs.toSorted((left, right) => right.busyShare - left.busyShare);
  return tableOf(
    `Outputs of the switches, in shares of the time of the traffic${restText(outputs.length, 'busiest')}`,
    outputHead,
    busiest.slice(0, rowsShown).map((row) => outputCells(row, report)),
  );
}

const restText = (count: number, which: string): string =>
  count > rowsShown ? `, the ${rowsShown} ${which}` : '';

/** The answer in three sentences, and one each for drops and marks if there are any. */
export function fabricSentences(row: FabricRow): string[] {
  if (row.phases !== undefined) return [...roundSentences(row), waitSentence(row), ...lossSentences(row)];
  if (row.flows.length === 0) return [...reductionSentences(row), waitSentence(row), ...lossSentences(row)];
  const { flows, args, bytesPerSecond, cableBytesPerSecond, fairness, durationPs } = row;
  const p99 = flows.map(({ p99Ps }) => p99Ps);
  const rates = flows.map((flow) => flow.bytesPerSecond);
  return [
    `Together the flows reach ${rateText(bytesPerSecond)} in ${timeText(durationPs)}, ${(bytesPerSecond / cableBytesPerSecond).toFixed(2)} times what the slowest cable of a host carries in such messages (${rateText(cableBytesPerSecond)}).`,
    `The slowest flow has ${rateText(Math.min(...rates))}, the fastest ${rateText(Math.max(...rates))}; Jain's index of fairness is ${fairness.toFixed(3)}. 99 % of a flow's messages ${row.completesEarly ? 'are in TCP within' : 'take at most'} ${timeText(Math.min(...p99))} to ${timeText(Math.max(...p99))}, with ${Math.min(args.window, args.messages)} in flight.`,
    waitSentence(row),
    ...lossSentences(row),
  ];
}

/** An all-reduce: its time, and the rate at which the algorithm must move data through each port. */
function reductionSentences({
  args,
  messageTimes,
  bytesPerSecond,
  cableBytesPerSecond,
}: FabricRow): string[] {
  const { hostCount, sizeBytes, messages, algorithm } = args;
  const bus = (bytesPerSecond * 2 * (hostCount - 1)) / hostCount;
  const { medianPs, p99Ps, maxPs } = messageTimes;
  return [
    `The sum of ${hostCount} vectors of ${bytesText(sizeBytes)} by ${algorithm} takes ${timeText(medianPs)} (median of ${countText(messages)}; 99 % within ${timeText(p99Ps)}, the longest ${timeText(maxPs)}).`,
    `On average that is ${rateText(bytesPerSecond)} of the vector, and a bus rate, 2 (n - 1)/n times as much, of ${rateText(bus)}, ${percentText(bus / cableBytesPerSecond)} of what one cable carries in WRITEs of that size.`,
  ];
}

/** Rounds with parameter servers: their time, and the busiest port. */
function roundSentences({
  args,
  messageTimes,
  bytesPerSecond,
  phases,
  busiest,
  report,
}: FabricRow): string[] {
  const { sizeBytes, messages } = args;
  const { medianPs, maxPs } = messageTimes;
  const { from, to, busyShare } = busiest!;
  return [
    `${countedText(workersOf(args).length, 'worker')} each send ${bytesText(sizeBytes)} of gradients to ${countedText(serversOf(args).length, 'server')} and read as many bytes of parameters back in ${timeText(medianPs)} (median of ${countText(messages)}; the longest ${timeText(maxPs)}): ${timeText(phases!.pushPs)} for the WRITEs, ${timeText(phases!.pullPs)} for the READs.`,
    `On average that is ${rateText(bytesPerSecond)} of gradients. The busiest port is that of ${nodeNameOf(report, from)} to ${nodeNameOf(report, to)}, which sends for ${percentText(busyShare)} of the time.`,
  ];
}

/** Frames that switches of Ethernet cut through, if any switch does. */
function cutSentences({ report: { switches = [] } }: FabricRow): string[] {
  const ports = switches.flatMap((own) => own.ports.filter((port) => port.cutThroughFrames !== undefined));
  if (ports.length === 0) return [];
  const cut = ports.reduce((sum, port) => sum + port.cutThroughFrames!, 0);
  const came = ports.reduce((sum, port) => sum + port.receivedPackets, 0);
  return [
    `Cut-through switches forwarded ${countText(cut)} of ${countText(came)} received frames before their last byte arrived. They stored or dropped the others.`,
  ];
}

/** Arrivals of packets with a wrong CRC at ports of switches, if any: a packet may pass several. */
function wrongCrcSentences({ report: { switches = [] } }: FabricRow): string[] {
  const ports = switches.flatMap((own) => own.ports);
  const sumOf = (pick: (port: (typeof ports)[number]) => number | undefined): number =>
    ports.reduce((sum, port) => sum + (pick(port) ?? 0), 0);
  const dropped = sumOf(({ wrongCrc }) => wrongCrc?.dropped);
  const accepted = sumOf(({ wrongCrc }) => wrongCrc?.accepted);
  const sent = sumOf(({ wrongCrc }) => wrongCrc?.sent);
  if (dropped + accepted === 0) return [];
  const arrivals = countedText(dropped + accepted, 'arrival');
  return [
    `Ports of switches counted ${arrivals} of packets with a wrong CRC; dropped at once: ${countText(dropped)}, accepted: ${countText(accepted)}, sent on: ${countText(sent)}.`,
  ];
}

/** Frames that were cut through, drops and marks, if any. */
function lossSentences(row: FabricRow): string[] {
  const { outputs, cnps, report } = row;
  const { config } = report;
  const isFecn = config.hca.capability.linkLayer === 'infiniband';
  const drops = outputs.reduce((sum, row) => sum + row.drops, 0);
  const held = outputs.reduce((sum, row) => sum + row.pauseDrops, 0);
  const marks = outputs.reduce((sum, row) => sum + row.marks, 0);
  return [
    ...cutSentences(row),
    ...wrongCrcSentences(row),
    ...(drops === 0
      ? []
      : [
          `The switches dropped ${countText(drops)} ${drops === 1 ? 'packet' : 'packets'}; what was not acknowledged is sent again.`,
        ]),
    ...(held === 0
      ? []
      : [
          `${countText(held)} of them had waited in a pause for longer than switch.ethernet.pauseWatchdogMs: switches that pause each other in a circle (a deadlock) do that, and switch.ethernet.multipath=tree has none.`,
        ]),
    ...(marks === 0
      ? []
      : [
          isFecn
            ? `They marked ${countText(marks)} packets with FECN${cnps === 0 ? '' : `, and the receivers returned ${countText(cnps)} BECNs`}.`
            : `They marked ${countText(marks)} packets for congestion (ECN)${cnps === 0 ? '' : `, and the receivers sent ${countText(cnps)} CNPs`}.`,
        ]),
  ];
}

function waitSentence({ report, outputs, hostWaitShare }: FabricRow): string {
  const [most] = outputs.toSorted((left, right) => right.farWaitShare - left.farWaitShare);
  if (most === undefined) return 'No switch is in the way.';
  const place = `switch ${most.switch} port ${most.port} to ${nodeNameOf(report, most.to)}`;
  const held = Math.max(...outputs.map(({ bufferedBytesMax }) => bufferedBytesMax));
  const waits =
    most.farWaitShare < leastShare
      ? 'No output of a switch waits for credits or the end of a pause'
      : `Of the switches' outputs, ${place} waits longest for credits or the end of a pause, ${percentText(most.farWaitShare)} of the time`;
  const hosts =
    hostWaitShare < leastShare ? 'no port of a host' : `a host's port up to ${percentText(hostWaitShare)}`;
  return `${waits}, and ${hosts}; the fullest input holds ${bytesText(held)}.`;
}

/** Smaller shares of the time are shown as none. */
const leastShare = 0.0005;
