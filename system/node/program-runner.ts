/**
 * Runs the programs of one host: gives each its core, its process and its context, and keeps what it returned.
 */
import { ConfigurationError } from '../../base/assert.ts';
import type { Process, Program } from '../../host/index.ts';
import { Random } from '../../sim/index.ts';
import type { JsonValue, LogLine, ProgramContext, ProgramFunction, ProgramState } from '../program.ts';
import type { HostNode } from './host-node.ts';
import { ProgramMemory } from './program-memory.ts';
import { verbsOf } from './verbs.ts';

/** What is known of a program besides its code: plain data. */
export interface ProgramOrder {
  readonly name: string;
  readonly core: number | undefined;
  readonly process: string | undefined;
  readonly args: JsonValue;
  /** Place among all programs of the machine. */
  readonly number: number;
}

/** Done and total of the programs of all nodes; see {@link ProgressBoard.report}. */
export type ProgressListener = (node: number, done: number, total: number) => void;

interface Loaded {
  readonly number: number;
  readonly program: Program;
  result: JsonValue | undefined;
}

export class ProgramRunner {
  readonly #host: HostNode;
  readonly #progress: Float64Array;
  readonly #loaded: Loaded[] = [];
  readonly #processes = new Map<string, Process>();
  readonly log: LogLine[] = [];
  /** Called at each report of progress, in the thread of the host. */
  onProgress: ProgressListener | undefined;

  /** @param progress shared memory: done and total of each node */
  constructor(host: HostNode, progress: SharedArrayBuffer) {
    this.#host = host;
    this.#progress = new Float64Array(progress, host.node * 16, 2);
  }

  /**
   * Has a program start now, or when the driver has probed the device.
   * @throws ConfigurationError when no core is free
   */
  load(order: ProgramOrder, run: ProgramFunction): void {
    const { host } = this.#host;
    const core = order.core ?? host.cores.findIndex(({ programName }) => programName === undefined);
    if (core < 0)
      throw new ConfigurationError(
        `programs on host ${this.#host.node}`,
        host.cores.length + 1,
        `at most host.core.count (${host.cores.length}): one for each core`,
      );
    const process = this.#processFor(order);
    const loaded: { -readonly [Key in keyof Loaded]?: Loaded[Key] } = { number: order.number };
    loaded.program = host.runProgram(
      order.name,
      core,
      async (hostContext) => {
        await this.#host.untilBooted(hostContext.cpu);
        const memory = new ProgramMemory(hostContext.memory);
        const context: ProgramContext = {
          name: order.name,
          node: this.#host.node,
          host,
          process: hostContext.process,
          cpu: hostContext.cpu,
          memory,
          verbs: verbsOf(this.#host, hostContext),
          args: order.args,
          exchange: this.#host.exchange.of(hostContext.cpu),
          random: new Random(this.#host.config.machine.seed, `program.${order.name}`),
          log: (text) =>
            this.log.push({
              node: this.#host.node,
              atPs: hostContext.cpu.localPs,
              program: order.name,
              text,
            }),
          progress: (done, total) => this.#reportProgress(done, total),
        };
        loaded.result = (await run(context)) ?? undefined;
      },
      process,
    );
    this.#loaded.push(loaded as Loaded);
  }

  /** The process of this name, while or after it runs; undefined when there was none. */
  processNamed(name: string): Process | undefined {
    return this.#processes.get(name);
  }

  /** What became of each program, in the order they were loaded. */
  states(): ProgramState[] {
    return this.#loaded.map(({ number, program, result }) => ({
      number,
      name: program.name,
      node: this.#host.node,
      endedPs: program.endedPs,
      result,
    }));
  }

  /** A program without a process name has a process of its own, under its own name. */
  #processFor({ name, process = name }: ProgramOrder): Process {
    const known = this.#processes.get(process);
    if (known !== undefined && !known.isEnded && process !== name) return known;
    const created = this.#host.host.newProcess(process);
    this.#processes.set(process, created);
    return created;
  }

  #reportProgress(done: number, total: number): void {
    this.#progress[0] = done;
    this.#progress[1] = total;
    this.onProgress?.(this.#host.node, done, total);
  }
}
