/**
 * Completion queues: the process's ring and doorbell record, a context that points at them, and the events that go to a
 * completion channel. Resizing hands the device a second ring; the library moves the CQEs left in the first. Source: interface
 * sheet 5.2, 3.16.
 */
import { cqc, cqeBytes, cqRecord, icmPageBytes } from '../abi/index.ts';
import { log2Exact } from '../base/index.ts';
import type { ContextMemory, UserRecord } from './context-memory.ts';
import type { Device } from './device.ts';
import type { EventQueue } from './event-queue.ts';
import type { EventSink } from './event-router.ts';
import { KernelError, require, requireWithin } from './kernel-error.ts';
import type { CreateCq } from './kernel-verbs.ts';
import type { Cpu } from './platform.ts';
import { mapBuffer, type UserBuffer, unmapBuffer } from './user-buffer.ts';

export interface CompletionQueue {
  readonly cqn: number;
  /** Destination of its completion events. */
  readonly eq: EventQueue;
  buffer: UserBuffer;
  readonly record: UserRecord;
}

const modify = { resize: 0, moderate: 1 } as const;
const logPage4k = log2Exact(icmPageBytes);

export async function createCq(
  cpu: Cpu,
  device: Device,
  memory: ContextMemory,
  uarPage: number,
  request: CreateCq,
  sink: EventSink,
): Promise<CompletionQueue> {
  checkEntries(device, request.entries);
  const eq = device.completionEqs[request.completionVector];
  require(eq !==
    undefined, `completionVector is ${request.completionVector}, expected 0 to ${device.completionEqs.length - 1}`);
  const buffer = await mapBuffer(
    cpu,
    device,
    memory.process,
    request.bufferAddress,
    request.entries * cqeBytes,
  );
  let record: UserRecord | undefined;
  const cqn = device.numbers.cqs.allocate();
  try {
    record = memory.mapRecord(cpu, request.doorbellRecordAddress, cqRecord.sizeBytes);
    if (cqn < 0) throw new KernelError('ENOMEM', 'no CQ number is left');
    await useContext(cpu, device, cqn);
    device.router.cqs.set(cqn, sink);
    try {
      await handOver(cpu, device, cqn, {
        logEntries: log2Exact(request.entries),
        uarPage,
        eqn: eq.eqn,
        buffer,
        recordAddress: record.physicalAddress,
        hasTimestamps: request.hasTimestamps === true,
      });
    } catch (error) {
      device.router.cqs.delete(cqn);
      await releaseContext(cpu, device, cqn);
      throw error;
    }
    return { cqn, eq, buffer, record };
  } catch (error) {
    if (cqn >= 0) device.numbers.cqs.release(cqn);
    if (record !== undefined) memory.unmapRecord(cpu, record);
    await unmapBuffer(cpu, device, memory.process, buffer);
    throw error;
  }
}

/** Moves the CQ to a new ring; unpins the old ring's pages after the device has left it. */
export async function resizeCq(
  cpu: Cpu,
  device: Device,
  memory: ContextMemory,
  cq: CompletionQueue,
  entries: number,
  bufferAddress: number,
): Promise<void> {
  checkEntries(device, entries);
  const buffer = await mapBuffer(cpu, device, memory.process, bufferAddress, entries * cqeBytes);
  const command = { inputModifier: cq.cqn, opcodeModifier: modify.resize };
  try {
    await device.commands.executeWithMailbox(cpu, 'MODIFY_CQ', command, (bytes, address) => {
      cqc.encodeInto(
        {
          logEntries: log2Exact(entries),
          logPageSize4k: buffer.translation.logPageBytes - logPage4k,
          mttAddress: buffer.translation.mttAddress,
        },
        bytes,
        address,
      );
    });
  } catch (error) {
    await unmapBuffer(cpu, device, memory.process, buffer);
    throw error;
  }
  const old = cq.buffer;
  cq.buffer = buffer;
  await unmapBuffer(cpu, device, memory.process, old);
}

/** Moderates events: at most one per `count` completions or `periodUs` µs. */
export async function moderateCq(
  cpu: Cpu,
  device: Device,
  cq: CompletionQueue,
  count: number,
  periodUs: number,
): Promise<void> {
  requireWithin('count', count, 0, 0xffff);
  requireWithin('periodUs', periodUs, 0, 0xffff);
  const command = { inputModifier: cq.cqn, opcodeModifier: modify.moderate };
  await device.commands.executeWithMailbox(cpu, 'MODIFY_CQ', command, (bytes, address) => {
    cqc.encodeInto({ moderationCount: count, moderationPeriodUs: periodUs }, bytes, address);
  });
}

export async function destroyCq(
  cpu: Cpu,
  device: Device,
  memory: ContextMemory,
  cq: CompletionQueue,
): Promise<void> {
  await device.commands.execute(cpu, 'HW2SW_CQ', { inputModifier: cq.cqn, opcodeModifier: 1 });
  // The CQ's last events are in the EQ, perhaps with their interrupt in flight. Numbers are reused at once, so an event
  // left there would be taken for one of the next CQ (Linux: synchronize_irq in mlx4_cq_free).
  if (cq.eq.hasEntries) await cq.eq.handleInterrupt(cpu);
  device.router.cqs.delete(cq.cqn);
  await releaseContext(cpu, device, cq.cqn);
  device.numbers.cqs.release(cq.cqn);
  memory.unmapRecord(cpu, cq.record);
  await unmapBuffer(cpu, device, memory.process, cq.buffer);
}

function checkEntries(device: Device, entries: number): void {
  const max = 2 ** device.limits.logMaxCqEntries;
  require(Number.isInteger(Math.log2(entries)) &&
    entries <= max, `entries is ${entries}, expected a power of two up to ${max}`);
}

async function useContext(cpu: Cpu, device: Device, cqn: number): Promise<void> {
  await device.icm.cqc.use(cpu, cqn);
  try {
    await device.icm.cmptCq.use(cpu, cqn);
  } catch (error) {
    await device.icm.cqc.release(cpu, cqn);
    throw error;
  }
}

async function releaseContext(cpu: Cpu, device: Device, cqn: number): Promise<void> {
  await device.icm.cmptCq.release(cpu, cqn);
  await device.icm.cqc.release(cpu, cqn);
}

interface NewCq {
  readonly logEntries: number;
  readonly uarPage: number;
  readonly eqn: number;
  readonly buffer: UserBuffer;
  readonly recordAddress: number;
  readonly hasTimestamps: boolean;
}

async function handOver(cpu: Cpu, device: Device, cqn: number, cq: NewCq): Promise<void> {
  await device.commands.executeWithMailbox(cpu, 'SW2HW_CQ', { inputModifier: cqn }, (bytes, address) => {
    cqc.encodeInto(
      {
        timestamps: cq.hasTimestamps ? 1 : 0,
        logEntries: cq.logEntries,
        uarPage: cq.uarPage,
        eqn: cq.eqn,
        logPageSize4k: cq.buffer.translation.logPageBytes - logPage4k,
        mttAddress: cq.buffer.translation.mttAddress,
        doorbellRecordAddress: BigInt(cq.recordAddress),
      },
      bytes,
      address,
    );
  });
}
