/**
 * A library that copies requests into BlueFlame registers by words, as compilers make it of a loop, on a core whose
 * write-combining buffers meet a bus that takes no more for a while: what was stored before the fence leaves, in order, and
 * every request is done once (Intel SDM volume 3A, 11.3; rdma-core, mlx4_bf_copy and mmio_wc_start).
 *
 *     post: WQE to memory ─► fence ─► words into the register ─► fence            and nothing behind it that would push
 */
import { psPerNs, psPerUs } from '../../base/index.ts';
import { barrier } from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import { Random } from '../../sim/index.ts';
import {
  IBV_SEND_INLINE,
  IBV_SEND_SIGNALED,
  IBV_WR_RDMA_WRITE,
  type IbvSendWr,
} from '../../userlib/index.ts';
import { completionsOf, connectWithPeer, failuresOf, leave, post } from './pair.ts';
import { differencesOf, patternOf, wrongOf } from './patterns.ts';
import type { Scene, SceneDraft } from './scene.ts';

interface Args {
  readonly seed: number;
  /** Bytes of one store. */
  readonly wordBytes: number;
  readonly qpCount: number;
  /** Requests at once; then their completions are waited for. */
  readonly bursts: readonly number[];
  readonly inlineBytesMax: number;
}

const slotBytes = 256;

function draw(random: Random): SceneDraft {
  const args: Args = {
    seed: random.below(1 << 30),
    wordBytes: [8, 8, 16, 32][random.below(4)]!,
    qpCount: 1 + random.below(4),
    bursts: Array.from({ length: 2 + random.below(8) }, () => 1 + random.below(14)),
    inlineBytesMax: random.chance(0.3) ? 16 + random.below(190) : 130 + random.below(70),
  };
  return {
    args: args as never,
    set: {
      'host.core.writeCombiningBuffers': 1 + random.below(5),
      'host.core.storeBufferEntries': [1, 4, 56][random.below(3)]!,
      'pcie.rootComplex.cpuEgressTlps': 1 + random.below(4),
      'pcie.endpointPort.postedHeaders': 1 + random.below(2),
      'pcie.link.generation': 1,
      'pcie.link.lanes': random.chance(0.8) ? 1 : 8,
    },
    hasDrawnHardware: random.chance(0.2),
  };
}

/** Has stores to write-combining memory leave word by word, until the next fence. */
function storeByWords({ cpu }: ProgramContext, wordBytes: number): void {
  const pushWhole = cpu.pushDeviceStore.bind(cpu);
  cpu.pushDeviceStore = (busAddress, lengthBytes, kind) => {
    if (kind === 'uncached') return pushWhole(busAddress, lengthBytes, kind);
    let first = -1;
    for (let at = 0; at < lengthBytes; at += wordBytes) {
      const offset = pushWhole(busAddress + at, Math.min(wordBytes, lengthBytes - at), kind);
      if (first < 0) first = offset;
      if (offset !== first + at) throw new Error(`stores at ${offset} instead of ${first + at}`);
    }
    return first;
  };
}

/** Posts. */
export async function poster(program: ProgramContext): Promise<JsonValue> {
  const { memory, cpu } = program;
  const args = program.args as unknown as Args;
  const { seed, bursts, qpCount, inlineBytesMax, wordBytes } = args;
  const random = new Random(seed, 'poster');
  const count = bursts.reduce((sum, burst) => sum + burst, 0);
  const side = await connectWithPeer(program, {
    areaBytes: count * slotBytes,
    qpCount,
    cap: { maxSendWr: 16, maxInlineData: inlineBytesMax },
  });
  storeByWords(program, wordBytes);
  const buffer = memory.map(slotBytes);
  const wrong: string[] = [];
  const lengths: number[] = [];
  for (const burst of bursts) {
    for (let at = 0; at < burst; at++) {
      const number = lengths.length;
      const length = 1 + random.below(inlineBytesMax);
      lengths.push(length);
      memory.write(buffer, patternOf(number, length));
      const request: IbvSendWr = {
        wrId: number,
        sgList: [{ addr: buffer, length, lkey: 0 }],
        numSge: 1,
        opcode: IBV_WR_RDMA_WRITE,
        sendFlags: IBV_SEND_SIGNALED | IBV_SEND_INLINE,
        wr: { rdma: { remoteAddr: side.peer.address + number * slotBytes, rkey: side.peer.rkey } },
      };
      const errno = post(side.qps[random.below(qpCount)]!, request);
      if (errno !== 0) wrong.push(`request ${number} refused with ${errno}`);
    }
    const ended = await completionsOf(side, burst);
    wrong.push(...failuresOf(ended));
    if (ended.length !== burst) wrong.push(`${ended.length} requests of a burst of ${burst} ended`);
    if (wrong.length > 0) break;
    await cpu.sleep(random.below(2000) * psPerNs);
  }
  await program.exchange.put('lengths', lengths);
  await barrier(program, 'over');
  await leave(side);
  return { wrong };
}

/** Has what was written. */
export async function holder(program: ProgramContext): Promise<JsonValue> {
  const { memory } = program;
  const { bursts, qpCount } = program.args as unknown as Args;
  const count = bursts.reduce((sum, burst) => sum + burst, 0);
  const side = await connectWithPeer(program, { areaBytes: count * slotBytes, qpCount });
  const lengths = (await program.exchange.take('lengths')) as number[];
  // The ACKs do not wait for the last bytes to be in memory.
  await program.cpu.sleep(100 * psPerUs);
  const wrong = lengths.flatMap((length, number) =>
    differencesOf(
      `request ${number}`,
      memory.read(side.area.address + number * slotBytes, slotBytes),
      Uint8Array.from([...patternOf(number, length), ...new Uint8Array(slotBytes - length)]),
    ),
  );
  await barrier(program, 'over');
  await leave(side);
  return { wrong };
}

export const copiedByWords: Scene = {
  name: 'copied-by-words',
  about: 'requests are copied into BlueFlame registers by words, over a bus that is often full',
  module: import.meta.url,
  programs: [
    { node: 0, exportName: 'poster' },
    { node: 1, exportName: 'holder' },
  ],
  draw,
  judge: ({ results }) => wrongOf(results),
};
