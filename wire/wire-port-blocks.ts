/** The blocks of the two kinds of port, and their wires. */
import type { ChannelWriter, LogicalProcess, Wires } from '../sim/index.ts';
import type { FlowControl, FlowControlPorts } from './flow-control.ts';
import type { PacketArrival } from './link-rate.ts';
import { LinkTraining, type LinkTrainingPorts } from './link-training.ts';
import type { WireConfig } from './parameters.ts';
import { WireSender, type WireSenderPorts } from './wire-sender.ts';

/** A port as a whole, and the sender that waits for it to accept a packet. */
interface WireSurroundings {
  readonly port: WireSenderPorts['port'] & LinkTrainingPorts['port'];
  readonly sender: WireSenderPorts['sender'];
}

export function makeWireBlocks(
  lp: LogicalProcess,
  config: WireConfig,
  writer: ChannelWriter,
  arrival: PacketArrival,
) {
  return { wireSender: new WireSender(lp, config, writer, arrival), training: new LinkTraining(lp, config) };
}

export type WireBlocks = ReturnType<typeof makeWireBlocks>;

/** Wires of an InfiniBand port. */
export function wirePortWires(b: WireBlocks & WireSurroundings): Wires<WireBlocks> {
  const { port, sender } = b;
  return {
    wireSender: { port, sender },
    training: { port, sender: b.wireSender },
  };
}

export interface EthernetBlocks {
  readonly training: LinkTraining;
  readonly flowControl: FlowControl;
}

interface EthernetSurroundings {
  readonly port: LinkTrainingPorts['port'] & LinkTrainingPorts['sender'] & FlowControlPorts['port'];
}

/** Wires of an Ethernet port. */
export function ethernetPortWires(b: EthernetBlocks & EthernetSurroundings): Wires<EthernetBlocks> {
  return { training: { port: b.port, sender: b.port }, flowControl: { port: b.port } };
}
