/**
 * Connections of two protection domains use one region alternately: those of its domain succeed, the others are refused, whatever the device looked
 * up just before, and move no byte (IBTA 10.2.3, 10.6.3.1).
 */
import { connectRc } from '../../experiments/workloads/index.ts';
import { postSend } from '../../userlib/index.ts';
import type { ArgsOf, Draft, Draws, Stage } from './language/index.ts';
import { connect, patternOf, READ, scene, times, WRITE } from './language/index.ts';

function draw(random: Draws) {
  const args = {
    // Host whose QPs are of another domain than the area, which is the answerer's, or the asker's own.
    strangeAt: random.chance(0.6) ? 'answerer' : 'asker',
    opcode: random.chance(0.5) ? WRITE : READ,
    lengthBytes: random.chance(0.5) ? 1 + random.below(64) : 1 + random.below(5000),
    // Requests in the order of posting: over the QPs of the area's domain, or the next one of the other domain.
    isStrange: times(2 + random.below(9), () => random.chance(0.5)),
    // Whether all are posted at once; otherwise each waits for the previous one.
    isAtOnce: random.chance(0.5),
  };
  return { args, hasDrawnHardware: random.chance(0.5), climate: 'flawed' } satisfies Draft<unknown>;
}

type Args = ArgsOf<typeof draw>;

/** Number of the bytes of a host. */
const ofHost = [1000, 10] as const;

/** Fills the area; at the end it holds its initial bytes, or the peer's if a request may have moved them. */
async function begin(stage: Stage<Args>) {
  const { node } = stage;
  const { lengthBytes, isStrange, opcode, strangeAt } = stage.args;
  const side = await connect(stage, { areaBytes: lengthBytes * isStrange.length });
  const isStrangeHere = strangeAt === (node === 0 ? 'asker' : 'answerer');
  const pd = isStrangeHere ? await side.device.domain() : side.device.pd;
  const count = isStrange.filter((one) => one).length;
  const strangers = await side.device.rcQps(count, side.cq, {}, { pd });
  await connectRc(side.device.endpoint, strangers, 'strangers');
  const [before, moved] = [node, 1 - node].map((host) => patternOf(ofHost[host]!, side.area.lengthBytes));
  side.fill(before!);
  await stage.meet('filled');
  const judgeBytes = (): void => {
    for (const [id, strange] of isStrange.entries()) {
      const isMoved = !strange && (opcode === READ) === (node === 0);
      const due = (isMoved ? moved! : before!).subarray(id * lengthBytes, (id + 1) * lengthBytes);
      side.expect(`bytes of request ${id}`, id * lengthBytes, due);
    }
  };
  return { side, strangers, judgeBytes };
}

/** Posts requests over all of them. */
async function asker(stage: Stage<Args>): Promise<void> {
  const { lengthBytes, isStrange, opcode, isAtOnce, strangeAt } = stage.args;
  const { side, strangers, judgeBytes } = await begin(stage);
  const refusal = strangeAt === 'asker' ? 'LOC_PROT_ERR' : 'REM_ACCESS_ERR';
  const ended = [];
  for (const [id, strange] of isStrange.entries()) {
    const request = side.request(id, opcode, { offset: id * lengthBytes, lengthBytes });
    postSend(strange ? strangers.shift()! : side.qp, request);
    if (!isAtOnce) ended.push(...(await side.completions(1)));
  }
  if (isAtOnce) ended.push(...(await side.completions(isStrange.length)));
  for (const [id, strange] of isStrange.entries()) {
    const statuses = ended.filter((one) => one.id === id).map(({ status }) => status);
    const due = strange ? refusal : 'SUCCESS';
    if (`${statuses}` !== due) stage.accuse(`request ${id} ended in ${statuses} instead of ${due}`);
  }
  await stage.meet('over');
  judgeBytes();
}

async function answerer(stage: Stage<Args>): Promise<void> {
  const { judgeBytes } = await begin(stage);
  await stage.meet('over');
  await stage.lastBytesIn();
  judgeBytes();
}

export const wrongDomain = scene({
  about: 'connections of the right and of a wrong protection domain use one region by turns',
  draw,
  programs: [asker, answerer],
});
