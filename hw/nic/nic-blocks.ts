/**
 * The blocks of the card between the bus and the cable, and their wires: nic.ts connects them to function and port. Blocks in
 * the table are reset with the card, shown by its `inspect`, and checked by the contracts of nic-blocks.spec.ts.
 */

import { nicBits } from '../../abi/nic/index.ts';
import type { Cycles } from '../../base/index.ts';
import type { Block, ClockDomain, LogicalProcess, Wires } from '../../sim/index.ts';
import type { EthernetPort } from '../../wire/index.ts';
import type { DmaReadEngine, DmaWriteEngine } from '../dma/index.ts';
import type { PcieFunction } from '../pcie/index.ts';
import { BusMaster } from './bus-master.ts';
import { ReadBursts, WriteBursts } from './bus-master-ports.ts';
import { DescriptorRing } from './descriptor-ring.ts';
import { LinkWatch } from './link-watch.ts';
import type { NicCounters } from './nic-counters.ts';
import { NicInterrupts } from './nic-interrupts.ts';
import { PacketBuffer } from './packet-buffer.ts';
import type { NicConfig } from './parameters.ts';
import { ReceiveEngine } from './receive-engine.ts';
import { ReceiveMac } from './receive-mac.ts';
import { cacheBytesOf, TransmitEngine } from './transmit-engine.ts';
import { TransmitMac } from './transmit-mac.ts';

const KIB = 1024;

/** Resources that all blocks share. */
export interface NicBlocksSetup {
  readonly lp: LogicalProcess;
  readonly domain: ClockDomain;
  readonly config: NicConfig;
  readonly counters: NicCounters;
  /** Packet buffer (BAR2), then descriptor caches. */
  readonly sram: Uint8Array;
  readonly port: EthernetPort;
  readonly pcieFunction: PcieFunction;
  readonly dmaRead: DmaReadEngine;
  readonly dmaWrite: DmaWriteEngine;
}

/** A block of the card: a reset occurs in a cycle, up to which its account is updated. */
export interface NicBlock extends Omit<Block, 'reset'> {
  reset(cycle: Cycles): void;
}

/** The blocks, in the order in which their stages are added: from the output side back. */
export function makeBlocks(setup: NicBlocksSetup) {
  const { domain, config, counters, sram, port, dmaRead, dmaWrite: writes } = setup;
  const transmitBytes = config.transmitBufferKib * KIB;
  const receiveBytes = config.receiveBufferKib * KIB;
  const interrupts = new NicInterrupts({ domain, port: setup.pcieFunction, writes, counters });
  const linkWatch = new LinkWatch(domain);
  const transmitBuffer = new PacketBuffer(0, transmitBytes);
  const receiveBuffer = new PacketBuffer(transmitBytes, receiveBytes);
  const shared = { ...setup, interrupts, writes };
  const ring = {
    domain,
    reads: dmaRead,
    cacheEntries: config.descriptorCacheEntries,
    resetPrefetch: nicBits.queueControl.prefetch.resetValue,
    counters,
    interrupts,
  };
  const transmitMac = new TransmitMac({ ...shared, buffer: transmitBuffer });
  const { burstBytes, burstsOutstanding } = config;
  const transmitBusMaster = new BusMaster({
    name: 'nicTransmitBusMaster',
    domain,
    port: new ReadBursts(dmaRead, burstsOutstanding),
    burstBytes,
  });
  const receiveBusMaster = new BusMaster({
    name: 'nicReceiveBusMaster',
    domain,
    port: new WriteBursts(writes, burstsOutstanding, sram),
    burstBytes,
  });
  const cacheOffset = transmitBytes + receiveBytes;
  const transmitRing = new DescriptorRing({ ...ring, name: 'transmit', cacheOffset });
  const receiveRing = new DescriptorRing({
    ...ring,
    name: 'receive',
    cacheOffset: cacheOffset + cacheBytesOf(config),
  });
  const { frameBytesMax } = port;
  return {
    interrupts,
    linkWatch,
    transmitBuffer,
    receiveBuffer,
    transmitMac,
    transmitBusMaster,
    receiveBusMaster,
    transmitRing,
    receiveRing,
    transmitEngine: new TransmitEngine({
      ...shared,
      ring: transmitRing,
      buffer: transmitBuffer,
      frameBytesMax,
    }),
    receiveEngine: new ReceiveEngine({ ...shared, ring: receiveRing, buffer: receiveBuffer }),
    receiveMac: new ReceiveMac({ ...shared, buffer: receiveBuffer }),
  };
}

export type NicBlocks = ReturnType<typeof makeBlocks>;
/** The blocks and the cable's port, which a reset of the card does not reset. */
export type NicBlocksAndPort = NicBlocks & { readonly port: EthernetPort };

/** The wires of the blocks. */
export function nicWires(b: NicBlocksAndPort): Wires<NicBlocksAndPort> {
  return {
    port: { receiver: b.receiveMac, sender: b.transmitMac, link: b.linkWatch },
    linkWatch: { interrupts: b.interrupts },
    transmitRing: { engine: b.transmitEngine },
    transmitBusMaster: { engine: b.transmitEngine },
    transmitMac: { engine: b.transmitEngine },
    transmitEngine: { busMaster: b.transmitBusMaster, mac: b.transmitMac },
    receiveRing: { engine: b.receiveEngine },
    receiveBusMaster: { engine: b.receiveEngine },
    receiveMac: { engine: b.receiveEngine },
    receiveEngine: { busMaster: b.receiveBusMaster },
  };
}
