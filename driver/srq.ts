/**
 * Shared receive queues: the process's ring of linked WQEs and its doorbell record, and a limit that requests one event
 * when fewer WQEs are left. Source: interface sheet 5.5, 6.5, 3.16.
 */
import { icmPageBytes, receiveRecord, srqc, srqNextSegment } from '../abi/index.ts';
import { log2Exact } from '../base/index.ts';
import type { ContextMemory, UserRecord } from './context-memory.ts';
import type { Device } from './device.ts';
import type { EventSink } from './event-router.ts';
import { KernelError, require, requireWithin } from './kernel-error.ts';
import type { CreateSrq } from './kernel-verbs.ts';
import type { Cpu } from './platform.ts';
import { mapBuffer, type UserBuffer, unmapBuffer } from './user-buffer.ts';

/** Numbers of an SRQ's domain and CQ for XRC; for other SRQs the number for no domain, and 0. */
export interface SrqObjects {
  readonly pdn: number;
  readonly xrcdn: number;
  readonly cqn: number;
}

export interface SharedReceiveQueue {
  readonly srqn: number;
  readonly maxWr: number;
  readonly maxSge: number;
  readonly buffer: UserBuffer;
  readonly record: UserRecord;
}

const dataPointerBytes = 16;

export async function createSrq(
  cpu: Cpu,
  device: Device,
  memory: ContextMemory,
  objects: SrqObjects,
  request: CreateSrq,
  sink: EventSink,
): Promise<SharedReceiveQueue> {
  checkSize(device, request);
  const { wqeCount, wqeStrideBytes } = request;
  const buffer = await mapBuffer(
    cpu,
    device,
    memory.process,
    request.bufferAddress,
    wqeCount * wqeStrideBytes,
  );
  let record: UserRecord | undefined;
  const srqn = device.numbers.srqs.allocate();
  try {
    record = memory.mapRecord(cpu, request.doorbellRecordAddress, receiveRecord.sizeBytes);
    if (srqn < 0) throw new KernelError('ENOMEM', 'no SRQ number is left');
    await useContext(cpu, device, srqn);
    device.router.srqs.set(srqn, sink);
    try {
      await handOver(cpu, device, srqn, objects, request, buffer, record.physicalAddress);
    } catch (error) {
      device.router.srqs.delete(srqn);
      await releaseContext(cpu, device, srqn);
      throw error;
    }
  } catch (error) {
    if (srqn >= 0) device.numbers.srqs.release(srqn);
    if (record !== undefined) memory.unmapRecord(cpu, record);
    await unmapBuffer(cpu, device, memory.process, buffer);
    throw error;
  }
  const maxSge = (wqeStrideBytes - srqNextSegment.sizeBytes) / dataPointerBytes;
  return { srqn, maxWr: wqeCount - 1, maxSge, buffer, record };
}

/** Arms the limit: one event when fewer than `limit` WQEs are left. */
export async function armSrq(
  cpu: Cpu,
  device: Device,
  srq: SharedReceiveQueue,
  limit: number,
): Promise<void> {
  requireWithin('srqLimit', limit, 0, srq.maxWr);
  await device.commands.execute(cpu, 'ARM_SRQ', { inputModifier: srq.srqn, input: limit });
}

/** The limit that is armed now; 0 when it has fired or was never set. */
export const querySrqLimit = (cpu: Cpu, device: Device, srq: SharedReceiveQueue): Promise<number> =>
  device.commands.query(
    cpu,
    'QUERY_SRQ',
    { inputModifier: srq.srqn },
    (bytes, at) => srqc.decode(bytes, at).limitWatermark,
  );

export async function destroySrq(
  cpu: Cpu,
  device: Device,
  memory: ContextMemory,
  srq: SharedReceiveQueue,
): Promise<void> {
  await device.commands.execute(cpu, 'HW2SW_SRQ', { inputModifier: srq.srqn, opcodeModifier: 1 });
  device.router.srqs.delete(srq.srqn);
  await releaseContext(cpu, device, srq.srqn);
  device.numbers.srqs.release(srq.srqn);
  memory.unmapRecord(cpu, srq.record);
  await unmapBuffer(cpu, device, memory.process, srq.buffer);
}

function checkSize(device: Device, request: CreateSrq): void {
  const { wqeCount, wqeStrideBytes } = request;
  const strideMin = srqNextSegment.sizeBytes + dataPointerBytes;
  const strideMax = device.limits.maxReceiveDescriptorBytes;
  const wqesMax = 2 ** device.limits.logMaxSrqWqes;
  const isCount = Number.isInteger(Math.log2(wqeCount)) && wqeCount <= wqesMax;
  require(isCount, `wqeCount is ${wqeCount}, expected a power of two up to ${wqesMax}`);
  const isStride =
    Number.isInteger(Math.log2(wqeStrideBytes)) && wqeStrideBytes >= strideMin && wqeStrideBytes <= strideMax;
  require(isStride, `wqeStrideBytes is ${wqeStrideBytes}, expected a power of two from ${strideMin} to ${strideMax}`);
}

async function useContext(cpu: Cpu, device: Device, srqn: number): Promise<void> {
  await device.icm.srqc.use(cpu, srqn);
  try {
    await device.icm.cmptSrq.use(cpu, srqn);
  } catch (error) {
    await device.icm.srqc.release(cpu, srqn);
    throw error;
  }
}

async function releaseContext(cpu: Cpu, device: Device, srqn: number): Promise<void> {
  await device.icm.cmptSrq.release(cpu, srqn);
  await device.icm.srqc.release(cpu, srqn);
}

async function handOver(
  cpu: Cpu,
  device: Device,
  srqn: number,
  { pdn, xrcdn, cqn }: SrqObjects,
  request: CreateSrq,
  buffer: UserBuffer,
  recordAddress: number,
): Promise<void> {
  await device.commands.executeWithMailbox(cpu, 'SW2HW_SRQ', { inputModifier: srqn }, (bytes, address) => {
    srqc.encodeInto(
      {
        logWqes: log2Exact(request.wqeCount),
        srqn,
        logStride16: log2Exact(request.wqeStrideBytes / dataPointerBytes),
        xrcDomain: xrcdn,
        cqn,
        logPageSize4k: buffer.translation.logPageBytes - log2Exact(icmPageBytes),
        mttAddress: buffer.translation.mttAddress,
        pd: pdn,
        doorbellRecordAddress: BigInt(recordAddress),
      },
      bytes,
      address,
    );
  });
}
