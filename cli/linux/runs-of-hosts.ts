/**
 * The commands of `hca linux` in their order. One that ends with & is a server's side: the next command begins when it listens,
 * and it is waited for before the next command of its host, or at the end.
 *
 *     --run "host0: ib_write_lat &" --run "host1: ib_write_lat host0"
 */
import { ConfigurationError } from '../../base/index.ts';
import {
  figuresBetween,
  type LinuxCommandReport,
  type LinuxMachine,
  type RunCost,
  type RunningCommand,
} from '../../guests/linux/index.ts';
import type { Screen } from '../output.ts';

export interface OrderedRun {
  readonly node: number;
  readonly command: string;
  /** The text that is typed in. */
  readonly typed: string;
  readonly isServer: boolean;
  /** Its name in a budget; undefined if it has none. */
  readonly budgetName: string | undefined;
}

/** @throws ConfigurationError for a host that is not there, and a server without another host */
export function orderedRuns(texts: readonly string[], hosts: number): OrderedRun[] {
  return texts.map((text) => {
    const [, digit = '0', line = text] = /^host(\d+):\s*(.*)$/s.exec(text) ?? [];
    const node = Number(digit);
    if (node >= hosts)
      throw new ConfigurationError(
        '--run',
        text,
        hosts === 1
          ? `a command of host 0: host ${node} takes --hosts ${node + 1}`
          : `a command of hosts 0 to ${hosts - 1}`,
      );
    const server = /^(.*[^&\s])\s*&\s*$/s.exec(line)?.[1];
    if (server !== undefined && hosts === 1)
      throw new ConfigurationError(
        '--run',
        text,
        "a command without & at its end: that takes --hosts 2, or pair 'SERVER' 'CLIENT'",
      );
    const command = server ?? line;
    return { node, command, typed: command, isServer: server !== undefined, budgetName: text };
  });
}

/** A command that runs beside others. */
interface Server {
  readonly run: OrderedRun;
  readonly running: RunningCommand;
  /** Its place among the commands. */
  readonly at: number;
  readonly before: RunCost['hcas'];
}

export class RunsOfHosts {
  readonly #machine: LinuxMachine;
  readonly #timeoutSeconds: number;
  readonly #screen: Screen;
  readonly #servers: Server[] = [];
  readonly #ended = new Map<
    number,
    { readonly report: LinuxCommandReport; readonly cost: RunCost | undefined }
  >();
  #count = 0;

  constructor(machine: LinuxMachine, timeoutSeconds: number, screen: Screen) {
    this.#machine = machine;
    this.#timeoutSeconds = timeoutSeconds;
    this.#screen = screen;
  }

  /** Ended commands, in the order in which they began. */
  get commands(): LinuxCommandReport[] {
    return this.#inOrder().map(({ report }) => report);
  }

  /** Cost of each, from its begin to its end, whatever else ran meanwhile. */
  get costs(): RunCost[] {
    return this.#inOrder().flatMap(({ cost }) => (cost === undefined ? [] : [cost]));
  }

  #inOrder() {
    return [...this.#ended].sort(([left], [right]) => left - right).map(([, each]) => each);
  }

  /** Runs a command, and shows its output as it arrives; a server's when it has ended. @throws GuestError */
  async run(run: OrderedRun): Promise<void> {
    const { node, command, typed, isServer } = run;
    const busy = this.#servers.find((each) => each.run.node === node);
    if (busy !== undefined) await this.#finishServer(busy);
    const [machine, at, before] = [this.#machine, this.#count++, this.#machine.figures()];
    const timeoutSeconds = this.#timeoutSeconds;
    this.#screen.print(`host${node}$ ${command}${isServer ? ' &' : ''}`);
    if (isServer) {
      const running = await machine.startServer(node, command, timeoutSeconds);
      this.#servers.push({ run, running, at, before });
      return;
    }
    const limits = { timeoutSeconds, onOutput: (output: string) => this.#screen.write(output) };
    const running = machine.host(node).start(command, limits, typed);
    await this.#note(run, running, at, before);
  }

  /** Waits for the servers. @throws GuestError */
  async finish(): Promise<void> {
    for (const server of [...this.#servers]) await this.#finishServer(server);
  }

  async #finishServer(server: Server): Promise<void> {
    const { run, running, at, before } = server;
    this.#servers.splice(this.#servers.indexOf(server), 1);
    const output = await this.#note(run, running, at, before);
    this.#screen.print(`host${run.node}: what ${run.command} printed:`);
    this.#screen.write(output);
  }

  async #note(
    { node, budgetName }: OrderedRun,
    running: RunningCommand,
    at: number,
    before: RunCost['hcas'],
  ): Promise<string> {
    const result = await this.#machine.finish(running);
    const after = this.#machine.figures();
    const cost =
      budgetName === undefined
        ? undefined
        : { run: budgetName, hcas: after.map((figures, hca) => figuresBetween(before[hca]!, figures)) };
    this.#ended.set(at, { report: { host: node, ...result }, cost });
    return result.output;
  }
}
