/**
 * The host's slot with a measuring device in it, as in pcie-bench. Link and root complex come from the machine's
 * configuration; the device has its own times (measuring-device.ts).
 *
 *     window 1      one access after another: the latency of each
 *     many          accesses of a window in flight: the payload that the link carries
 */
import { psPerUs } from '../../base/index.ts';
import { PcieLinkPort, RootComplex } from '../../hw/pcie/index.ts';
import type { MachineConfig } from '../../machine/profile/index.ts';
import { ChannelReader, ChannelWriter, channelBufferBytes, LogicalProcess } from '../../sim/index.ts';
import { MeasuringDevice } from './measuring-device.ts';
import type { Figures, SlotPoint } from './points.ts';
import { memoryOfSlot } from './slot-memory.ts';

const channelBytes = 1 << 20;
const limitPs = 2000 * psPerUs;

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
    memory: memoryOfSlot(config, hostLp, point),
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
