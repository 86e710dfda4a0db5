/**
 * One host's program of rounds with parameter servers: in each, every worker WRITEs an equal part of its gradients to every server, and then
 * READs the parameters from each. A phase begins at one instant at all hosts, when the one before has ended everywhere: the barrier is no part
 * of the measured time, and neither is the servers' arithmetic.
 *
 *     connect ─▶ instant ─▶ WRITE to every server, poll … ─▶ instant ─▶ READ from every server, poll … ─▶ instant … ─▶ compare all bytes
 *
 * The buffers at both ends of a flow have two halves: gradients, and parameters. All rounds move the same bytes to the same places, and
 * the comparison at the end does not tell which of them moved a byte.
 */
import type { ProgramContext } from '../../machine/index.ts';
import { createCq } from '../../userlib/index.ts';
import { commonStart } from './common-start.ts';
import { CompletionPoller } from './completion-poller.ts';
import { type FabricArgs, type Flow, flowsOf, posterOf, type RoundsSide, serversOf } from './fabric-plan.ts';
import { connectFlow, contentOf, type FlowEnd, Sender, wrongFlows } from './fabric-traffic.ts';
import { openEndpoint } from './rc-endpoint.ts';

type Program = ProgramContext<FabricArgs>;

export async function roundsHost(program: Program): Promise<RoundsSide> {
  const { args, node, memory } = program;
  const partBytes = args.sizeBytes / serversOf(args).length;
  const { trafficClass } = args;
  const endpoint = await openEndpoint(program, trafficClass === undefined ? {} : { trafficClass });
  const flows = flowsOf(args).filter(({ from, to }) => from === node || to === node);
  const cq = await createCq(endpoint.context, Math.max(1, flows.length));
  const pushes: FlowEnd[] = [];
  const size = { ...args, sizeBytes: 2 * partBytes };
  for (const flow of flows) pushes.push(halfOf(await connectFlow(endpoint, flow, cq, size), partBytes, 0));
  for (const { flow, buffer } of pushes) {
    const sent = flow.from === node ? flow : backOf(flow);
    const half = contentOf(sent, partBytes);
    const nothing = new Uint8Array(partBytes);
    memory.write(buffer.address, sent === flow ? half : nothing);
    memory.write(buffer.address + partBytes, sent === flow ? nothing : half);
  }
  const poller = new CompletionPoller(cq);
  const push = new Phase(program, pushes, poller, { verb: 'write', sizeBytes: partBytes });
  const pulls = pushes.map((end) => ({
    ...halfOf(end, partBytes, partBytes),
    flow: backOf(end.flow),
    completesEarly: false,
  }));
  const pull = new Phase(program, pulls, poller, { verb: 'read', sizeBytes: partBytes });
  const rounds: (readonly [pushPs: number, pullPs: number])[] = [];
  for (let round = 0; round < args.messages; round++) {
    rounds.push([await push.run(), await pull.run()]);
    program.progress(round + 1, args.messages);
  }
  return { rounds, wrong: [...(await push.wrongFlows()), ...(await pull.wrongFlows())] };
}

/** The flow that returns the parameters. */
const backOf = ({ from, to, ...route }: Flow): Flow => ({ ...route, from: to, to: from });

/** The end of a flow with one half of its buffers. */
const halfOf = (end: FlowEnd, lengthBytes: number, at: number): FlowEnd => ({
  ...end,
  buffer: { ...end.buffer, address: end.buffer.address + at, lengthBytes },
  remote: { ...end.remote, address: end.remote.address + at },
});

/** One message of every flow in one direction. */
class Phase {
  readonly #program: Program;
  readonly #ends: readonly FlowEnd[];
  readonly #poller: CompletionPoller;

  constructor(
    program: Program,
    ends: readonly FlowEnd[],
    poller: CompletionPoller,
    message: Pick<FabricArgs, 'verb' | 'sizeBytes'>,
  ) {
    this.#program = { ...program, progress: () => {}, args: { ...program.args, ...message, messages: 1 } };
    this.#ends = ends;
    this.#poller = poller;
  }

  /** @returns time until the last message that this host posts has ended */
  async run(): Promise<number> {
    const { cpu, args, node } = this.#program;
    const startPs = await commonStart(this.#program, args.hostCount);
    await cpu.sleep(startPs - Number(cpu.instantPs));
    const posted = this.#ends.filter(({ flow }) => posterOf(flow, args.verb) === node);
    const results = await new Sender(this.#program, posted, this.#poller).run(startPs);
    return Math.max(0, ...results.map(({ durationPs }) => durationPs));
  }

  wrongFlows(): Promise<Flow[]> {
    return wrongFlows(this.#program, this.#ends);
  }
}
