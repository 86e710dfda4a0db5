/**
 * The two bus masters' ports to the DMA engines: bursts of frames, asked for as long as the engine's fifo has room.
 *
 *     transmit  memory ── read engine ──► packet buffer        receive  packet buffer ── write engine ──► memory
 */
import type { BusAddress } from '../../base/units.ts';
import type { ClockDomain } from '../../sim/index.ts';
import { type DmaReadEngine, type DmaWriteEngine, TrafficClass } from '../dma/index.ts';
import { BusMaster } from './bus-master.ts';
import type { NicConfig } from './parameters.ts';

/** Moves frames from memory into the SRAM of the read engine. */
export function readingBusMaster(
  domain: ClockDomain,
  { burstBytes, burstsOutstanding }: NicConfig,
  reads: DmaReadEngine,
): BusMaster {
  const options = {
    name: 'frames',
    trafficClass: TrafficClass.frameRead,
    fifoDepth: burstsOutstanding,
    weight: 1,
  };
  const requester = reads.addRequester(options, {
    done: (bytes, status, cycle) => master.done(bytes, status, cycle),
    space: () => master.wake(),
  });
  const port = {
    canRequest: () => reads.canRequest(requester),
    request: (address: BusAddress, bytes: number, place: number) =>
      reads.request(requester, address, bytes, place, bytes),
  };
  const master = new BusMaster({ name: 'nicTransmitBusMaster', domain, port, burstBytes });
  return master;
}

/** Moves frames from `sram` into memory. */
export function writingBusMaster(
  domain: ClockDomain,
  { burstBytes, burstsOutstanding }: NicConfig,
  writes: DmaWriteEngine,
  sram: Uint8Array,
): BusMaster {
  const options = { name: 'frames', trafficClass: TrafficClass.frameWrite, fifoDepth: burstsOutstanding };
  const requester = writes.addRequester(options, {
    done: (bytes, cycle) => master.done(bytes, 0, cycle),
    space: () => master.wake(),
  });
  const port = {
    canRequest: () => writes.canRequest(requester),
    request: (address: BusAddress, bytes: number, place: number) =>
      writes.request(requester, address, bytes, sram, place, bytes),
  };
  const master = new BusMaster({ name: 'nicReceiveBusMaster', domain, port, burstBytes });
  return master;
}
