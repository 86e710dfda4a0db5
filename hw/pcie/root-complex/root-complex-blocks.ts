/** The blocks of the root complex, and their wires: root-complex.ts connects them between the link port, memory and the cores. */
import type { Wires } from '../../../sim/index.ts';
import { CarriedPayload, type PcieLinkPort, type TlpReceiver, ZeroCopyPayload } from '../link/index.ts';
import { RootComplexCpu } from './root-complex-cpu.ts';
import { RootComplexEgress } from './root-complex-egress.ts';
import type { HostMemory, InterruptSink, SharedDevice } from './root-complex-interfaces.ts';
import type { RootComplexParts } from './root-complex-parts.ts';
import { RootComplexReads } from './root-complex-reads.ts';
import { RootComplexWrites } from './root-complex-writes.ts';
import { WordMonitor } from './word-monitor.ts';

export interface RootComplexCore extends RootComplexParts {
  readonly memory: HostMemory;
  readonly coreCount: number;
  /** The device, if it shares this thread and offers shared resources. */
  readonly device: SharedDevice | undefined;
}

/** Neighbours of the blocks outside the root complex, and the root complex as a whole. */
interface Surroundings {
  readonly rootComplex: TlpReceiver;
  readonly interrupts: InterruptSink;
}

/** The blocks, in the order in which their stages are added: writes take effect before the same edge samples memory for a completion. */
export function makeBlocks(core: RootComplexCore) {
  const { lp, domain, port, device } = core;
  const places = device?.earlyPlaces;
  const payload =
    device?.references === undefined
      ? new CarriedPayload(port.reader)
      : new ZeroCopyPayload(port.reader, device.references);
  return {
    writes: new RootComplexWrites({ ...core, payload }),
    egress: new RootComplexEgress({ lp, domain, hasEarlyPlaces: places !== undefined }),
    reads: new RootComplexReads({ ...core, places }),
    cpu: new RootComplexCpu(core),
    monitor: new WordMonitor(core),
  };
}

export type RootComplexBlocks = ReturnType<typeof makeBlocks>;
/** The blocks and the host's end of the link, which is created before them. */
export type RootComplexBlocksAndPort = RootComplexBlocks & { readonly port: PcieLinkPort };

/** The wires of the blocks. */
export function rootComplexWires(
  b: RootComplexBlocksAndPort & Surroundings,
): Wires<RootComplexBlocksAndPort> {
  const { rootComplex, interrupts } = b;
  const senders = [b.egress];
  return {
    port: { receiver: rootComplex, posted: senders, nonPosted: senders, completion: senders },
    writes: { interrupts },
    egress: { reads: b.reads, cpu: b.cpu },
    reads: { writes: b.writes, egress: b.egress },
    cpu: { writes: b.writes, egress: b.egress },
  };
}
