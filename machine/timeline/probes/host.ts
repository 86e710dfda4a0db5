/** Probes of a host: its cores, interrupts, the root complex and the verbs library's posts and polls. */
import { frameOperation } from '../../../abi/index.ts';
import {
  type Core,
  type CoreThread,
  cpuCauses,
  type Host,
  type InterruptController,
} from '../../../host/index.ts';
import type { PcieLinkPort, RootComplex } from '../../../hw/pcie/index.ts';
import type { OperationLog } from '../../node/operation-log.ts';
import type { OperationTimes } from '../../node/operation-times.ts';
import { around } from '../around.ts';
import { interruptStepNumbers } from '../kinds.ts';
import type { Stream } from '../stream.ts';
import { watchTransmitFifos } from './adapter.ts';
import { watchFifos } from './blocks.ts';
import { watchCore } from './core.ts';
import { queuePairTrack } from './queue-pair-track.ts';

export interface WatchedHost {
  readonly host: Host;
  readonly port: PcieLinkPort;
  readonly rootComplex: RootComplex;
  readonly operations: OperationLog;
  readonly times: OperationTimes;
}

export function watchHost(stream: Stream, { host, port, rootComplex, operations, times }: WatchedHost): void {
  watchFifos(stream, { 'root complex': rootComplex.writes });
  watchTransmitFifos(stream, port);
  if (stream.has('cores')) for (const core of host.cores) watchCore(stream, core, cpuCauses);
  if (stream.has('interrupts')) watchInterrupts(stream, host.interrupts, host.cores);
  if (stream.has('operations')) watchPosts(stream, operations, times);
  if (stream.has('levels')) watchSendQueues(stream, operations);
}

/** Records interrupts from the message at the root complex to the end of its handler. */
function watchInterrupts(stream: Stream, interrupts: InterruptController, cores: readonly Core[]): void {
  const track = stream.track('interrupts', 'interrupt controller');
  const { reachedHost, delivered } = interruptStepNumbers;
  around(interrupts, 'message', (message) => (address, data) => {
    stream.instant('interrupt', track, stream.lp.nowPs, reachedHost, (data & 0xff) - FIRST_SYSTEM_VECTOR);
    message(address, data);
  });
  for (const core of cores)
    around(core, 'interrupt', (interrupt) => (vector) => {
      stream.instant('interrupt', track, stream.lp.nowPs, delivered, vector);
      interrupt(vector);
    });
  const served = stream.track('interrupts', 'handlers');
  around(interrupts, 'serve', (serve) => (vector: number, cpu: CoreThread) => {
    const beganUs = stream.lp.epochUs;
    const beganPs = cpu.ownPs;
    const ended = serve(vector, cpu);
    // Returns the original promise, so that code that awaits it is not delayed.
    void ended.then(
      () => {
        const fromPs = beganPs - (stream.lp.epochUs - beganUs) * 1e6;
        stream.interval('interruptServed', served, fromPs, cpu.ownPs, vector, cpu.coreIndex);
      },
      () => undefined,
    );
    return ended;
  });
}

/** First number of the platform's vectors in a message's data (host/interrupt-controller.ts). */
const FIRST_SYSTEM_VECTOR = 32;

/** Work requests when they become visible to the device, and when the program has their completions. */
function watchPosts(stream: Stream, operations: OperationLog, times: OperationTimes): void {
  let ordinal = 0;
  const ordinals = new Map<number, number>();
  around(operations, 'posted', (posted) => (qpn, wqeCounter, opcode, ownPs, operation) => {
    posted(qpn, wqeCounter, opcode, ownPs, operation);
    const entry = times.entryOf(qpn, wqeCounter);
    // The kernel's frames are separate: requests of programs are counted without them.
    const number = opcode === frameOperation ? -1 : ordinal++;
    if (entry >= 0) ordinals.set(entry, number);
    if (number >= 0) stream.posted(number);
    stream.instant('posted', queuePairTrack(stream, qpn), ownPs, qpn, wqeCounter, opcode, number);
  });
  around(operations, 'completed', (completed) => (qpn, wqeCounter, ownPs) => {
    completed(qpn, wqeCounter, ownPs);
    const entry = times.entryOf(qpn, wqeCounter);
    if (entry < 0) return;
    const opcode = times.opcodeAt(entry);
    const track = queuePairTrack(stream, qpn);
    stream.instant('taken', track, ownPs, qpn, wqeCounter, opcode, ordinals.get(entry) ?? -1);
  });
}

const COUNTER_MASK = 0xffff;

/**
 * Number of requests of each send queue that are posted and not completed: a completion also covers all earlier ones,
 * most of which may have none of their own.
 */
function watchSendQueues(stream: Stream, operations: OperationLog): void {
  interface SendQueue {
    readonly track: number;
    /** WQE counters of the oldest uncompleted request, and of the next one to be posted. */
    oldest: number;
    next: number;
    notedUs: number;
    notedPs: number;
  }
  const queues = new Map<number, SendQueue>();
  const countOf = ({ oldest, next }: SendQueue): number => (next - oldest) & COUNTER_MASK;
  const note = (queue: SendQueue, atPs: number): void => {
    stream.instant('level', queue.track, atPs, countOf(queue));
    queue.notedUs = stream.lp.epochUs;
    queue.notedPs = atPs;
  };
  around(operations, 'posted', (posted) => (qpn, wqeCounter, opcode, ownPs, operation) => {
    posted(qpn, wqeCounter, opcode, ownPs, operation);
    let queue = queues.get(qpn);
    if (queue === undefined) {
      const track = stream.track('levels', `QP 0x${qpn.toString(16)}: requests posted and not taken`);
      queue = { track, oldest: wqeCounter, next: wqeCounter, notedUs: 0, notedPs: 0 };
      queues.set(qpn, queue);
    }
    // A counter other than the next one: the queue was reset in between and lost its requests.
    if (wqeCounter !== queue.next) queue.oldest = wqeCounter;
    queue.next = (wqeCounter + 1) & COUNTER_MASK;
    note(queue, ownPs);
  });
  around(operations, 'completed', (completed) => (qpn, wqeCounter, ownPs) => {
    completed(qpn, wqeCounter, ownPs);
    const queue = queues.get(qpn);
    if (queue === undefined || ((wqeCounter - queue.oldest) & COUNTER_MASK) >= countOf(queue)) return;
    queue.oldest = (wqeCounter + 1) & COUNTER_MASK;
    note(queue, ownPs);
  });
  around(operations, 'closed', (closed) => (qpn) => {
    closed(qpn);
    const queue = queues.get(qpn);
    queues.delete(qpn);
    if (queue === undefined || countOf(queue) === 0) return;
    queue.oldest = queue.next;
    // The posting core may have been ahead of the instant.
    const notedPs = queue.notedPs - (stream.lp.epochUs - queue.notedUs) * 1e6;
    note(queue, Math.max(stream.lp.nowPs, notedPs));
  });
}
