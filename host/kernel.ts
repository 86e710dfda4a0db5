/**
 * The parts of the host that the driver needs: configuration space, kernel memory, interrupt lines, threads. They fit
 * driver/platform.ts by structure; nothing here depends on the driver.
 */
import type { TimeKeeper } from '../sim/index.ts';
import type { CoreThread } from './core-thread.ts';
import { driverCostsOf } from './costs.ts';
import type { Host } from './host.ts';
import { pageBytes } from './mm/index.ts';
import type { SystemCallPath } from './process.ts';
import { threadOf } from './signal.ts';

/** A base address register as assigned: bus address, and size in bytes (0: not implemented). */
export interface BarWindow {
  readonly address: number;
  readonly sizeBytes: number;
}

/** Configuration accesses of one thread, for enumeration. */
export function configAccessOf(cpu: CoreThread) {
  const { port } = cpu.core.target;
  const cycles = cpu.core.cost.configAccess;
  return {
    readConfig32: (functionId: number, offset: number): Promise<number> =>
      cpu.access('driver', cycles, (done) => port.cpuConfigRead(functionId, offset, done)),
    async writeConfig32(functionId: number, offset: number, value: number): Promise<void> {
      await cpu.access('driver', cycles, (done) => port.cpuConfigWrite(functionId, offset, value, done));
    },
  };
}

/** A PCI function as its driver sees it. */
function pciFunctionOf(functionId: number, bars: readonly BarWindow[]) {
  return {
    bars,
    readConfig32: (cpu: unknown, offset: number): Promise<number> =>
      configAccessOf(threadOf(cpu)).readConfig32(functionId, offset),
    writeConfig32: (cpu: unknown, offset: number, value: number): Promise<void> =>
      configAccessOf(threadOf(cpu)).writeConfig32(functionId, offset, value),
  };
}

/** Physical memory, directly mapped. */
function kernelMemoryOf(host: Host) {
  const { memory, frames, mm, iommu } = host;
  return {
    sizeBytes: memory.sizeBytes,
    get bytes(): Uint8Array {
      return memory.bytes;
    },
    get view(): DataView {
      return memory.view;
    },
    /** Contiguous zeroed frames; -1 if none are left. */
    allocateFrames(count: number): number {
      const first = mm.allocateRun(count);
      for (let page = 0; first >= 0 && page < count; page++) iommu?.map((first + page) * pageBytes, true);
      return first < 0 ? -1 : first * pageBytes;
    },
    leaveToDevice: (address: number, count: number) => memory.leaveToDevice(address / pageBytes, count),
    freeFrames(address: number, count: number): void {
      const first = address / pageBytes;
      iommu?.unmap(
        Array.from({ length: count }, (_, page) => address + page * pageBytes),
        true,
      );
      for (let frame = first; frame < first + count; frame++) frames.release(frame);
    },
  };
}

type Handler = (cpu: CoreThread) => Promise<void>;

/** The interrupt lines of one device. @param pin its legacy pin (0 is INTA), if it has one */
function interruptLinesOf(host: Host, pin: number) {
  const { interrupts } = host;
  return {
    // The last vector belongs to the IOMMU, if there is one.
    vectorCount: interrupts.vectorCount - (host.iommu === undefined ? 0 : 1),
    messageFor: (vector: number) => interrupts.messageFor(vector),
    attach: (vector: number, handler: Handler) => interrupts.attach(vector, handler),
    detach: (vector: number) => interrupts.detach(vector),
    legacy: {
      attach: (handler: Handler) => interrupts.attachPin(pin, handler),
      detach: () => interrupts.detachPin(pin),
    },
  };
}

/** Everything that a driver needs of this host to drive one function. */
export function driverPlatformOf(host: Host, functionId: number, bars: readonly BarWindow[], pin = 0) {
  return {
    pci: pciFunctionOf(functionId, bars),
    memory: kernelMemoryOf(host),
    interrupts: interruptLinesOf(host, pin),
    costs: driverCostsOf(host.config.cost),
    newSignal: () => host.newSignal(),
    stopwatch: () => host.logicalProcess.stopwatch(),
    nowPs: () => host.logicalProcess.nowPs,
    epochUs: () => host.epochUs,
    addTimeKeeper: (keeper: TimeKeeper) => host.logicalProcess.addTimeKeeper(keeper),
    spawn: (name: string, body: Handler) => host.spawn(name, body),
    isCoreWanted: (cpu: unknown) => threadOf(cpu).core.isWanted,
    systemCallEntered: (cpu: unknown, name: string, path: SystemCallPath) =>
      host.systemCallEntered(threadOf(cpu), name, path),
    kernelEntered: (cpu: unknown) => {
      threadOf(cpu).kernelDepth++;
    },
    kernelLeft: (cpu: unknown) => {
      threadOf(cpu).kernelDepth--;
    },
  };
}
