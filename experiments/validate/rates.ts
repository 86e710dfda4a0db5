/** Figures of threads that sent in parallel. */
import type { Report } from '../../machine/index.ts';
import type { FabricArgs, FabricSide, KvSide } from '../workloads/index.ts';
import type { Figures, StreamPlan } from './points.ts';
import type { StreamResult } from './programs/stream.ts';

type Samples = StreamResult['samples'];

/** Finished messages at an instant, interpolated between two samples. */
function doneAt(samples: Samples, atPs: number): number {
  const next = samples.findIndex(([ps]) => ps >= atPs);
  if (next <= 0) return next === 0 ? samples[0]![1] : samples.at(-1)![1];
  const [[fromPs, from], [toPs, to]] = [samples[next - 1]!, samples[next]!];
  return from + ((to - from) * (atPs - fromPs)) / (toPs - fromPs);
}

/**
 * Messages per second of all threads together while all are busy: from when the last one has finished a quarter of its
 * messages to when the first has finished all.
 */
export function commonRate(threads: readonly Samples[]): number {
  const quarterPs = threads.map((samples) => samples.find(([, done]) => done * 4 >= samples.at(-1)![1])![0]);
  const fromPs = Math.max(...quarterPs);
  const toPs = Math.min(...threads.map((samples) => samples.at(-1)![0]));
  if (toPs <= fromPs) return Number.NaN;
  const done = threads.reduce((sum, samples) => sum + doneAt(samples, toPs) - doneAt(samples, fromPs), 0);
  return (done / (toPs - fromPs)) * 1e12;
}

/** Data read by the device are transferred in lines of the processor's cache. */
const lineBytes = 64;
/** InfiniBand port counters exclude these bytes (IBTA 16.1.3.5); Ethernet counters include whole frames with FCS (H-262: 74 bytes more). */
const vcrcBytes = 2;
const completionOverheadBytes = 20;
/** Reads of the device caused by a message; those of set-up have other classes or are few. */
const messageReads = ['wqeRead', 'payloadRead', 'context', 'translation', 'doorbellRecord'] as const;

export function streamFigures(
  plan: StreamPlan,
  nodes: readonly (readonly StreamResult[])[],
  { nodes: reports, wire }: Report,
): Figures {
  const active = nodes.filter((threads) => threads.length > 0);
  const rates = active.map((threads) => commonRate(threads.map(({ samples }) => samples)));
  const mops = rates.reduce((sum, rate) => sum + rate, 0) / rates.length / 1e6;
  const first = nodes[0]!;
  const messages = first.reduce((sum, { samples }) => sum + samples.at(-1)![1], 0);
  const postPs = first.reduce((sum, thread) => sum + thread.postPs, 0) / first.length;
  const classes = reports[0]!.pcie.toDevice.classes;
  const readBytes = messageReads.reduce((sum, name) => {
    const count = classes[name];
    return sum + (count === undefined ? 0 : count.bytes - count.tlps * completionOverheadBytes);
  }, 0);
  const toPeer = wire.find(({ from }) => from === 0)!;
  const uncountedBytes = reports[0]!.hca.ethernet === undefined ? toPeer.packets * vcrcBytes : 0;
  return {
    mops,
    latencyUs: (plan.window * plan.threads) / mops,
    gbps: (mops * plan.sizeBytes * 8) / 1e3,
    postNs: postPs / 1e3,
    readLinesMops: (readBytes / lineBytes / messages) * mops,
    wireOverheadPercent: ((toPeer.bytes - uncountedBytes) / (messages * plan.sizeBytes) - 1) * 100,
  };
}

/** Figures of the second half of each flow's messages: the first one fills caches and windows. */
export function flowFigures(
  { messages, sizeBytes }: Pick<FabricArgs, 'messages' | 'sizeBytes'>,
  sides: readonly FabricSide[],
): Figures {
  const flows = sides.flatMap((side) => side.flows);
  const half = Math.ceil(messages / 2);
  const perPs = flows.reduce(
    (sum, { durationPs, halfPs }) => sum + (messages - half) / (durationPs - halfPs),
    0,
  );
  const times = flows
    .flatMap(({ messagePs }) => messagePs.slice(half))
    .toSorted((left, right) => left - right);
  const mops = perPs * 1e6;
  return {
    mops,
    gbps: (mops * sizeBytes * 8) / 1e3,
    p90Us: times[Math.ceil(0.9 * times.length) - 1]! / 1e6,
  };
}

/** Figures of the clients of a store: the requests of all until the last one has its answers. */
export function requestFigures(clients: readonly KvSide[]): Figures {
  const times = clients.flatMap(({ requests }) => requests.timesPs);
  const durationPs = Math.max(...clients.map(({ result }) => result!.durationPs));
  return {
    mops: (times.length / durationPs) * 1e6,
    averageUs: times.reduce((sum, ps) => sum + ps, 0) / times.length / 1e6,
  };
}
