/** Parts of a NIC: its configuration and the ends of its link and its cable; and checks of them. */
import { nicBar0 } from '../../abi/nic/index.ts';
import { ConfigurationError, MAC_BYTES } from '../../base/index.ts';
import type { ChannelReader, ChannelWriter, LogicalProcess } from '../../sim/index.ts';
import type { EthernetConfig } from '../../wire/index.ts';
import type { SlotSetup } from '../dma/index.ts';
import type { NicConfig } from './parameters.ts';

const KIB = 1024;

/** The function's configuration is one of `nicFunctionParameters`. */
export interface NicSetup extends SlotSetup {
  readonly lp: LogicalProcess;
  readonly config: NicConfig;
  readonly ethernet: EthernetConfig;
  /** The channels of the cable, of `ethernetChannelBytes`. */
  readonly wireWriter: ChannelWriter;
  readonly wireReader: ChannelReader;
  /** Seed of the cable's loss and corruption. */
  readonly seed: number;
  /** The board's MAC address; see {@link macAddressOf}. */
  readonly macAddress: readonly number[];
}

/** A locally administered MAC address for a node, from 0. */
export const macAddressOf = (nodeIndex: number): readonly number[] => [0x02, 0x12, 0x34, 0, 0, nodeIndex + 1];

/** @throws ConfigurationError if the packet buffer is not in BAR2, or the MSI-X table differs from the interface's */
export function checkSetup({ config, pcieFunction, macAddress, ethernet }: NicSetup): void {
  const bufferBytes = (config.transmitBufferKib + config.receiveBufferKib) * KIB;
  if (bufferBytes > pcieFunction.bar2Bytes) {
    const range = `with receiveBufferKib at most bar2Bytes (${pcieFunction.bar2Bytes})`;
    throw new ConfigurationError('nic.transmitBufferKib', config.transmitBufferKib, range);
  }
  const frameBytes = ethernet.mtuBytes + 18;
  if (frameBytes > config.transmitBufferKib * KIB || frameBytes > config.receiveBufferKib * KIB) {
    throw new ConfigurationError(
      'ethernet.mtuBytes',
      ethernet.mtuBytes,
      'a frame that fits the packet buffer',
    );
  }
  const { msixTable, msixPending } = nicBar0.registers;
  for (const [name, { offset }] of [
    ['msixTableOffset', msixTable],
    ['msixPendingOffset', msixPending],
  ] as const)
    if (pcieFunction[name] !== offset)
      throw new ConfigurationError(name, pcieFunction[name], `${offset}, the interface's`);
  if (macAddress.length !== MAC_BYTES || (macAddress[0]! & 1) !== 0) {
    throw new ConfigurationError('macAddress', macAddress.join(':'), '6 bytes of a unicast address');
  }
}
