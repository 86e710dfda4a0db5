/** What is observed in a host: its cores, interrupts, the root complex and the verbs library's posts and polls. */
import {
  type Core,
  type CoreThread,
  cpuCauses,
  type Host,
  type InterruptController,
} from '../../../../host/index.ts';
import type { PcieLinkPort, RootComplex } from '../../../../hw/pcie/index.ts';
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
}

/** From the message at the root complex to the end of its handler. */
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
    // The promise itself is handed on: nothing that awaits it is later than it would be.
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

/** Vectors of the platform begin here in a message's data (host/interrupt-controller.ts). */
const FIRST_SYSTEM_VECTOR = 32;

/** Work requests as they become visible to the device, and as their completions are in the program's hands. */
function watchPosts(stream: Stream, operations: OperationLog, times: OperationTimes): void {
  let ordinal = 0;
  const ordinals = new Map<number, number>();
  const outstanding = new Map<number, number>();
  const noteLevel = (qpn: number, change: number, atPs: number): void => {
    const count = (outstanding.get(qpn) ?? 0) + change;
    outstanding.set(qpn, count);
    if (stream.has('levels'))
      stream.instant(
        'level',
        stream.track('levels', `QP 0x${qpn.toString(16)}: requests posted and not taken`),
        atPs,
        count,
      );
  };
  around(operations, 'posted', (posted) => (qpn, wqeCounter, opcode, ownPs, operation) => {
    posted(qpn, wqeCounter, opcode, ownPs, operation);
    const entry = times.entryOf(qpn, wqeCounter);
    if (entry >= 0) ordinals.set(entry, ordinal);
    stream.posted(ordinal);
    stream.instant('posted', queuePairTrack(stream, qpn), ownPs, qpn, wqeCounter, opcode, ordinal++);
    noteLevel(qpn, 1, ownPs);
  });
  around(operations, 'completed', (completed) => (qpn, wqeCounter, ownPs) => {
    completed(qpn, wqeCounter, ownPs);
    const entry = times.entryOf(qpn, wqeCounter);
    if (entry < 0) return;
    const opcode = times.opcodeAt(entry);
    const track = queuePairTrack(stream, qpn);
    stream.instant('taken', track, ownPs, qpn, wqeCounter, opcode, ordinals.get(entry) ?? -1);
    noteLevel(qpn, -1, ownPs);
  });
}
