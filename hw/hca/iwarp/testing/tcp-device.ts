/** The control side of a card with iWARP and its TCP engine, whose port has no cable: for specs of commands and events as software sees them. */
import { initHca } from '../../../../abi/init-hca.ts';
import { defaultsOf } from '../../../../base/parameter.ts';
import { connectBlocks } from '../../../../sim/index.ts';
import { EthernetPort, ethernetParameters, ethernetPlug } from '../../../../wire/index.ts';
import type { CapabilityConfig } from '../../capabilities.ts';
import { hcaParameters } from '../../parameters.ts';
import { donateIcm, icmBase, must, profile, startFirmware } from '../../testing/bring-up.ts';
import { BumpAllocator, ControlBench, latencyCycles } from '../../testing/control-bench.ts';
import { MemoryDma } from '../../testing/memory-dma.ts';
import { iwarpParameters } from '../iwarp-parameters.ts';
import { makeTcpBlocks, tcpWires } from '../tcp/tcp-blocks.ts';
import type { TcpControl } from '../tcp/tcp-control.ts';

/** Contexts of TCP, in the part of the chunk of EQ contexts that no EQ uses. */
const auxcBase = icmBase.eqc + 0x2_0000;
const sramBytes = 2 << 20;

function tcpOf(bench: ControlBench): TcpControl {
  const { lp, domain, memory, icm, control } = bench;
  const sram = new BumpAllocator(sramBytes);
  const dma = new MemoryDma(memory, domain, sram.bytes, latencyCycles);
  const config = defaultsOf(ethernetParameters);
  const port = new EthernetPort({ lp, config, seed: 1, ...ethernetPlug(config) });
  const blocks = makeTcpBlocks({
    ...{ lp, domain, address: { isActive: true }, contextMemory: icm, dmaRead: dma, dmaWrite: dma },
    ...{ config: defaultsOf(hcaParameters), iwarp: defaultsOf(iwarpParameters), connectionsMax: 4096 },
    ethernet: { port, side: control.ports[0]!.ethernet! },
    sram,
  });
  const frameReceiver = { frameArrived: (slot: number): void => port.consume(slot) };
  connectBlocks(
    blocks,
    tcpWires(blocks, {
      eventQueues: control.events,
      frameTransmitter: { waitsForWire: false },
      frameReceiver,
    }),
  );
  port.connect({
    receiver: blocks.tcpEngine,
    sender: blocks.tcpTransmitter,
    link: { linkChanged: () => undefined },
  });
  return blocks.tcpControl;
}

/** A device up to the donation of ICM. */
export function iwarpDevice(capabilities: Partial<CapabilityConfig> = {}): ControlBench {
  const own = { linkLayer: 'ethernet', transport: 'iwarp', ...capabilities } as const;
  const bench = new ControlBench({}, own, [0, 1], {}, undefined, tcpOf);
  startFirmware(bench);
  donateIcm(bench);
  return bench;
}

/** The mailbox of INIT_HCA with room for 2^logTcpConnections connections. */
export const tcpProfile = (logTcpConnections: number): Uint8Array =>
  initHca.encode({ ...profile, auxcBase: BigInt(auxcBase), logTcpConnections });

/** A device after INIT_HCA, with 16 numbers, the first of which is not used. */
export function tcpDevice(): ControlBench {
  const bench = iwarpDevice();
  must(bench, 'INIT_HCA', { inBox: tcpProfile(4) });
  return bench;
}
