/**
 * The host's slot with a measuring device in it, as in pcie-bench. Link and root complex come from the machine's
 * configuration; the device has its own times (measuring-device.ts).
 *
 *     window 1      one access after another: the latency of each
 *     many          accesses of a window in flight: the payload that the link carries
 */
import { psPerUs } from '../../base/index.ts';
import { type HostMemory, PcieLinkPort, RootComplex } from '../../hw/pcie/index.ts';
import type { MachineConfig } from '../../machine/profile/index.ts';
import { ChannelReader, ChannelWriter, channelBufferBytes, LogicalProcess } from '../../sim/index.ts';
import { MeasuringDevice, windowBytes } from './measuring-device.ts';
import type { Figures, SlotPoint } from './points.ts';

const channelBytes = 1 << 20;
const limitPs = 2000 * psPerUs;

class SlotMemory implements HostMemory {
  readonly #bytes = new Uint8Array(2 * windowBytes);

  get sizeBytes(): number {
    return this.#bytes.length;
  }

  readInto(address: number, lengthBytes: number, target: Uint8Array, targetOffset: number): boolean {
    target.set(this.#bytes.subarray(address, address + lengthBytes), targetOffset);
    return true;
  }

  write(address: number, lengthBytes: number, source: Uint8Array, sourceOffset: number): boolean {
    this.#bytes.set(source.subarray(sourceOffset, sourceOffset + lengthBytes), address);
    return true;
  }
}

/**
 * Runs the accesses of a point.
 * @returns their latency and the payload carried in one direction
 */
export function slotFigures(config: MachineConfig, point: SlotPoint): Figures {
  const { link, rootPort, endpointPort, rootComplex } = config.pcie;
  const [up, down] = [0, 1].map(() => new SharedArrayBuffer(channelBufferBytes(channelBytes)));
  const [deviceLp, hostLp] = [new LogicalProcess('device'), new LogicalProcess('host')];
  const common = { link, trafficClassCount: 16 };
  const device = new PcieLinkPort({
    ...common,
    lp: deviceLp,
    end: endpointPort,
    peer: rootPort,
    writer: new ChannelWriter(up!),
    reader: new ChannelReader(down!),
  });
  const port = new PcieLinkPort({
    ...common,
    lp: hostLp,
    end: rootPort,
    peer: endpointPort,
    writer: new ChannelWriter(down!),
    reader: new ChannelReader(up!),
  });
  new RootComplex({
    lp: hostLp,
    config: rootComplex,
    end: rootPort,
    port,
    memory: new SlotMemory(),
    interrupts: { message: () => {}, intx: () => {} },
    coreCount: 1,
    trafficClasses: { register: 12, config: 13 },
  });
  const meter = new MeasuringDevice(device, deviceLp, config, point);
  run([deviceLp, hostLp], link.latencyPs, () => meter.isDone);
  return meter.figures();
}

/** Runs both processes alternately, in windows of the link's latency, until the device has finished. */
function run(sides: readonly LogicalProcess[], windowPs: number, isDone: () => boolean): void {
  while (!isDone()) {
    for (const lp of sides) lp.publish(lp.nowPs);
    for (const lp of sides) lp.refreshHorizon();
    const nextPs = Math.min(...sides.map((lp) => lp.nextPs()));
    if (nextPs >= limitPs) return;
    for (const lp of sides) lp.advance(Math.min(nextPs + windowPs, limitPs));
  }
}
