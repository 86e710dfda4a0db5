/**
 * Connections of two protection domains use one region by turns: those of its domain may, the others may not, whatever was
 * looked up just before, and of theirs nothing is written or read (IBTA 10.2.3, 10.6.3.1).
 */

import { barrier, connectRc, createRcQps } from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  allocPd,
  deallocPd,
  destroyQp,
  IBV_WC_LOC_PROT_ERR,
  IBV_WC_REM_ACCESS_ERR,
  IBV_WC_SUCCESS,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  type IbvPd,
} from '../../userlib/index.ts';
import {
  askerAndAnswerer,
  completionsOf,
  connectWithPeer,
  lastBytesIn,
  leave,
  post,
  requestOf,
} from './pair.ts';
import { differencesOf, patternOf, wrongOf } from './patterns.ts';
import type { Scene, SceneDraft } from './scene.ts';

interface Args {
  /** Whose QPs are of another domain than the area: the answerer's (its area is kept), or the asker's own. */
  readonly strangeAt: 'answerer' | 'asker';
  readonly opcode: number;
  readonly lengthBytes: number;
  /** Requests in the order of posting: over the QPs of the area's domain, or the next one of the other domain. */
  readonly isStrange: readonly boolean[];
  /** All post at once, or each waits for the one before. */
  readonly isAtOnce: boolean;
}

function draw(random: Random): SceneDraft {
  const args: Args = {
    strangeAt: random.chance(0.6) ? 'answerer' : 'asker',
    opcode: random.chance(0.5) ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
    lengthBytes: random.chance(0.5) ? 1 + random.below(64) : 1 + random.below(5000),
    isStrange: Array.from({ length: 2 + random.below(9) }, () => random.chance(0.5)),
    isAtOnce: random.chance(0.5),
  };
  return { args: args as never, hasDrawnHardware: random.chance(0.5), climate: 'flawed' };
}

const [ofAnswerer, ofAsker] = [10, 1000];

const strangersOf = ({ isStrange }: Args): number => isStrange.filter((one) => one).length;

/** A side with QPs of its domain, and one QP for each strange request in the domain `pd`. */
async function begin(program: ProgramContext, args: Args, isStrangeHere: boolean) {
  const { lengthBytes, isStrange } = args;
  const side = await connectWithPeer(program, { areaBytes: lengthBytes * isStrange.length });
  const { endpoint, cq } = side;
  const pd: IbvPd = isStrangeHere ? await allocPd(endpoint.context) : endpoint.pd;
  const strangers = await createRcQps({ ...endpoint, pd }, strangersOf(args), { send: cq, receive: cq }, {});
  await connectRc(endpoint, strangers, 'strangers');
  return { side, pd, strangers };
}

/** Posts requests over all of them. */
export async function asker(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const { lengthBytes, isStrange, opcode, isAtOnce, strangeAt } = args;
  const { side, pd, strangers } = await begin(program, args, strangeAt === 'asker');
  const { area } = side;
  const before = patternOf(ofAsker, area.lengthBytes);
  program.memory.write(area.address, before);
  await barrier(program, 'filled');
  const rest = [...strangers];
  const ended: { readonly id: number; readonly status: number }[] = [];
  for (const [id, strange] of isStrange.entries()) {
    const qp = strange ? rest.shift()! : side.qps[0]!;
    post(qp, requestOf(side, id, opcode, { offset: id * lengthBytes, lengthBytes }));
    if (!isAtOnce) ended.push(...(await completionsOf(side, 1)));
  }
  if (isAtOnce) ended.push(...(await completionsOf(side, isStrange.length)));
  const refusal = strangeAt === 'asker' ? IBV_WC_LOC_PROT_ERR : IBV_WC_REM_ACCESS_ERR;
  const wrong = isStrange.flatMap((strange, id) => {
    const statuses = ended.filter((one) => one.id === id).map(({ status }) => status);
    const expected = strange ? refusal : IBV_WC_SUCCESS;
    return statuses.length === 1 && statuses[0] === expected
      ? []
      : [`request ${id} ended in ${statuses.join()} instead of ${expected}`];
  });
  await barrier(program, 'over');
  const moved = patternOf(ofAnswerer, area.lengthBytes);
  for (const [id, strange] of isStrange.entries()) {
    const from = id * lengthBytes;
    const isMoved = opcode === IBV_WR_RDMA_READ && !strange;
    wrong.push(
      ...differencesOf(
        `own bytes of request ${id}`,
        program.memory.read(area.address + from, lengthBytes),
        (isMoved ? moved : before).subarray(from, from + lengthBytes),
      ),
    );
  }
  for (const qp of strangers) await destroyQp(qp);
  if (pd !== side.endpoint.pd) await deallocPd(pd);
  await leave(side);
  return { wrong };
}

/** Answers. */
export async function answerer(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const { lengthBytes, isStrange, opcode, strangeAt } = args;
  const { side, pd, strangers } = await begin(program, args, strangeAt === 'answerer');
  const { area } = side;
  const before = patternOf(ofAnswerer, area.lengthBytes);
  program.memory.write(area.address, before);
  await barrier(program, 'filled');
  await barrier(program, 'over');
  await lastBytesIn(program);
  const moved = patternOf(ofAsker, area.lengthBytes);
  const wrong = isStrange.flatMap((strange, id) => {
    const from = id * lengthBytes;
    const isMoved = opcode === IBV_WR_RDMA_WRITE && !strange;
    return differencesOf(
      `bytes that request ${id} reaches`,
      program.memory.read(area.address + from, lengthBytes),
      (isMoved ? moved : before).subarray(from, from + lengthBytes),
    );
  });
  for (const qp of strangers) await destroyQp(qp);
  if (pd !== side.endpoint.pd) await deallocPd(pd);
  await leave(side);
  return { wrong };
}

export const wrongDomain: Scene = {
  name: 'wrong-domain',
  about: 'connections of the right and of a wrong protection domain use one region by turns',
  module: import.meta.url,
  programs: askerAndAnswerer,
  draw,
  judge: ({ results }) => wrongOf(results),
};
