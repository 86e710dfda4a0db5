/**
 * A plug for a port without a cable: it connects the port's transmitter to its own receiver. The link comes up as soon as the
 * port is enabled, and sent packets return, with the latency, credits and counters of a cable.
 */
import { ChannelReader, ChannelWriter } from '../sim/index.ts';
import type { EthernetConfig } from './ethernet-parameters.ts';
import type { EthernetPortOptions } from './ethernet-port.ts';
import { ethernetChannelBytes } from './ethernet-sizing.ts';
import type { WireConfig } from './parameters.ts';
import type { WirePortOptions } from './wire-port.ts';
import { wireChannelBytes } from './wire-sizing.ts';

/** The two ends of a plug, for the options of a {@link WirePort}. */
export function loopbackPlug(
  config: WireConfig,
): Required<Pick<WirePortOptions, 'writer' | 'reader' | 'isLoopbackPlug'>> {
  const buffer = new SharedArrayBuffer(wireChannelBytes(config));
  return { writer: new ChannelWriter(buffer), reader: new ChannelReader(buffer), isLoopbackPlug: true };
}

/** The same for the options of an {@link EthernetPort}. */
export function ethernetPlug(config: EthernetConfig): Pick<EthernetPortOptions, 'writer' | 'reader'> {
  const buffer = new SharedArrayBuffer(ethernetChannelBytes(config));
  return { writer: new ChannelWriter(buffer), reader: new ChannelReader(buffer) };
}
