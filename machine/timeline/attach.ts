/** The streams of a machine's processes: created if the options request a timeline, else undefined. */
import type { Hca } from '../../hw/hca/index.ts';
import type { Nic } from '../../hw/nic/index.ts';
import type {
  EthernetSwitch,
  EthernetSwitchCable,
  InfinibandSwitch,
  SwitchCable,
} from '../../hw/switch/index.ts';
import type { ChannelReader, LogicalProcess } from '../../sim/index.ts';
import type { MachineConfig } from '../profile/index.ts';
import { watchAnswers } from './probes/answers.ts';
import { type HostAddresses, watchHca } from './probes/hca.ts';
import { type WatchedHost, watchHost } from './probes/host.ts';
import { watchCable, watchEthernet, watchPcie } from './probes/links.ts';
import { watchNic } from './probes/nic.ts';
import { watchSwitch } from './probes/switch.ts';
import { Stream, type TimelineOptions } from './stream.ts';

/** Directions of a PCIe link, by their track names. */
const toDevice = 'to device';
const toHost = 'to host';
/** Track of a cable's traffic that arrives at the recording process. */
const inbound = 'in';
const inboundTrack = (port: number): string => (port === 1 ? inbound : `${inbound}, port ${port}`);

/** The port whose cable a track of a cable is of. */
export const portOfTrack = (name: string): number => Number(/\d+$/.exec(name)?.[0] ?? 1);

export function hostStream(
  options: TimelineOptions | undefined,
  lp: LogicalProcess,
  watched: WatchedHost,
  { pcie }: MachineConfig,
): Stream | undefined {
  if (options === undefined) return undefined;
  const stream = new Stream(lp, options);
  watchPcie(stream, watched.port.reader, pcie.link, toHost);
  watchHost(stream, watched);
  return stream;
}

/** Creates the stream of a slot whose host is not simulated: traffic on its link to the host. */
export function slotStream(
  options: TimelineOptions | undefined,
  lp: LogicalProcess,
  reader: ChannelReader,
  { pcie }: MachineConfig,
): Stream | undefined {
  if (options === undefined) return undefined;
  const stream = new Stream(lp, options);
  watchPcie(stream, reader, pcie.link, toHost);
  return stream;
}

export function hcaStream(
  options: TimelineOptions | undefined,
  lp: LogicalProcess,
  hca: Hca,
  { hca: config, pcie }: MachineConfig,
  cables: readonly ({ readonly reader: ChannelReader } | undefined)[],
  hosts: HostAddresses,
): Stream | undefined {
  if (options === undefined) return undefined;
  const stream = new Stream(lp, options);
  watchPcie(stream, hca.linkPort.reader, pcie.link, toDevice);
  for (const [index, cable] of cables.entries()) {
    if (cable === undefined) continue;
    const direction = inboundTrack(index + 1);
    if (hca.ethernetPort !== undefined)
      watchEthernet(stream, cable.reader, hca.ethernetPort.config, direction);
    else watchCable(stream, cable.reader, hca.wirePorts[index]!.config, direction);
  }
  watchHca(stream, hca, hosts);
  watchAnswers(stream, hca, config);
  return stream;
}

/** Creates the stream of a switch: packets on its cables, each packet's way through it, its queues. @param cables by port from 1 */
export function switchStream(
  options: TimelineOptions | undefined,
  lp: LogicalProcess,
  device: InfinibandSwitch | EthernetSwitch,
  cables: readonly (SwitchCable | EthernetSwitchCable | undefined)[],
): Stream | undefined {
  if (options === undefined) return undefined;
  const stream = new Stream(lp, options);
  for (const [index, cable] of cables.entries()) {
    if (cable === undefined) continue;
    const direction = inboundTrack(index + 1);
    if ('wire' in cable) watchCable(stream, cable.reader, cable.wire, direction, 'head');
    else watchEthernet(stream, cable.reader, cable.ethernet, direction);
  }
  watchSwitch(stream, device);
  return stream;
}

export function nicStream(
  options: TimelineOptions | undefined,
  lp: LogicalProcess,
  nic: Nic,
  { pcie, ethernet }: MachineConfig,
  wireReader: ChannelReader,
): Stream | undefined {
  if (options === undefined) return undefined;
  const stream = new Stream(lp, options);
  watchPcie(stream, nic.linkPort.reader, pcie.link, toDevice);
  watchEthernet(stream, wireReader, ethernet, inbound);
  watchNic(stream, nic);
  return stream;
}
