/** A single system DMA controller, with a device that accepts stores and answers loads. For specs only. */

import {
  SystemDmaMode,
  SystemDmaTransfer,
  systemDmaBits,
  systemDmaChannelPorts,
  systemDmaPorts,
} from '../../../abi/nic/index.ts';
import { defaultsOf } from '../../../base/parameter.ts';
import { withField } from '../../../base/registers.ts';
import type { Cycles } from '../../../base/units.ts';
import { LogicalProcess } from '../../../sim/index.ts';
import type { AccessDone } from '../../pcie/index.ts';
import { BenchMemory } from '../../pcie/root-complex/root-complex-bench.ts';
import { MemoryBus } from '../memory-bus.ts';
import { type SystemDmaConfig, systemDmaParameters } from '../parameters.ts';
import { SystemDma } from '../system-dma.ts';

export const channelPort = systemDmaChannelPorts.registers;
export const commonPort = systemDmaPorts.registers;
const { mode: MODE } = systemDmaBits;

const modeOf = (mode: number, transfer: number): number =>
  withField(withField(0, MODE.mode, mode), MODE.transfer, transfer);

interface Order {
  readonly mode?: number;
  readonly transfer?: number;
  readonly address: number;
  readonly device: number;
  readonly words: number;
  readonly flags?: number;
}

/** Programs a channel, as a CPU does, and requests it. */
export function order(dma: SystemDma, channel: number, { address, device, words, ...rest }: Order): void {
  const base = channel * 0x20;
  const mode = modeOf(rest.mode ?? SystemDmaMode.BLOCK, rest.transfer ?? SystemDmaTransfer.READ);
  dma.portWrite(base + channelPort.addressLow.offset, address);
  dma.portWrite(base + channelPort.count.offset, words);
  dma.portWrite(base + channelPort.deviceLow.offset, device % 2 ** 32);
  dma.portWrite(base + channelPort.deviceHigh.offset, Math.floor(device / 2 ** 32));
  dma.portWrite(base + channelPort.mode.offset, mode | (rest.flags ?? 0));
  dma.portWrite(commonPort.command.offset, 1);
  dma.portWrite(commonPort.mask.offset, dma.portRead(commonPort.mask.offset) & ~(1 << channel));
  dma.portWrite(commonPort.request.offset, 1 << channel);
}

/** A single controller at 100 MHz: cycle n is at n × 10 ns. Its device is a list of stores and a function of loads. */
export function systemDmaBench(changes: Partial<SystemDmaConfig> = {}) {
  const lp = new LogicalProcess('host');
  const memory = new BenchMemory(0x1000);
  for (let at = 0; at < memory.bytes.length; at++) memory.bytes[at] = (at * 5) & 0xff;
  const holds: [from: number, to: number][] = [];
  const bus = new MemoryBus({
    busTaken: (nowPs) => holds.push([nowPs / 10_000, -1]),
    busGiven: (nowPs) => {
      holds[holds.length - 1]![1] = nowPs / 10_000;
    },
  });
  const stores: [cycle: Cycles, address: number, bytes: number[]][] = [];
  const device = {
    room: Number.POSITIVE_INFINITY,
    stores: { storeSpace: () => {} },
    loadStatus: 0,
    loads: [] as number[],
    canStore: () => device.room > 0,
    connect: ({ stores }: { readonly stores: { storeSpace(): void } }) => {
      device.stores = stores;
    },
    cpuStore: (address: number, _class: number, source: Uint8Array, offset: number, lengthBytes: number) => {
      device.room--;
      stores.push([lp.nowPs / 10_000, address, [...source.subarray(offset, offset + lengthBytes)]]);
    },
    cpuLoad: (address: number, _lengthBytes: number, done: AccessDone) => {
      device.loads.push(address);
      answers.push(done);
      lp.queue.schedule(lp.nowPs + 400_000, answered, answers.length - 1);
    },
  };
  const answers: AccessDone[] = [];
  const answered = lp.queue.addHandler(
    (index) =>
      answers[index]!(device.loadStatus, device.loadStatus === 0 ? 0xa0b0_0000 + index : 0xffff_ffff),
    1,
  );
  const interrupts: [channel: number, cycle: Cycles][] = [];
  const dma = new SystemDma({
    lp,
    config: { ...defaultsOf(systemDmaParameters), ...changes },
    memory,
    bus,
    trafficClass: 12,
  });
  dma.connect({
    rootComplex: device,
    interrupts: { raise: (channel, nowPs) => interrupts.push([channel, nowPs / 10_000]) },
  });
  const runTo = (cycle: Cycles): void => {
    lp.advance(cycle * 10_000);
    lp.nowPs = cycle * 10_000;
  };
  return { lp, memory, bus, holds, stores, device, interrupts, dma, runTo };
}
