/** Runs the programs of one host: provides core, process and context of each, and keeps its result. */
import { ConfigurationError, textOfThrown } from '../../base/index.ts';
import type { CoreThread, ProgramContext as HostContext, Process, Program } from '../../host/index.ts';
import { Random } from '../../sim/index.ts';
import type { MarkedOperations } from '../costs/index.ts';
import type { JsonValue, LogLine, ProgramContext, ProgramFunction, ProgramState } from '../program.ts';
import type { Exchange } from './exchange.ts';
import type { HostNode } from './host-node.ts';
import { jsonCopy } from './json-value.ts';
import { ProgramMemory } from './program-memory.ts';
import { verbsOf } from './verbs.ts';

/** Properties of a program in addition to its code: plain data. */
export interface ProgramOrder {
  readonly name: string;
  readonly core: number | undefined;
  readonly process: string | undefined;
  readonly args: JsonValue;
  /** Index among all programs of the machine. */
  readonly number: number;
}

/** Done and total of the programs of all nodes; see {@link ProgressBoard.report}. */
export type ProgressListener = (node: number, done: number, total: number) => void;

interface Loaded {
  readonly order: ProgramOrder;
  readonly program: Program;
  /** Whether its own code has begun, that is, it no longer waits for the driver. */
  hasBegun: boolean;
  result: JsonValue | undefined;
}

export class ProgramRunner {
  readonly #host: HostNode;
  readonly #progress: Float64Array;
  readonly #loaded: Loaded[] = [];
  readonly #processes = new Map<string, Process>();
  readonly log: LogLine[] = [];
  /** Called with each line that is added to the log. */
  onLog: ((text: string) => void) | undefined;
  /** Called at each report of progress, in the thread of the host. */
  onProgress: ProgressListener | undefined;

  /** @param progress shared memory: done and total of each node */
  constructor(host: HostNode, progress: SharedArrayBuffer) {
    this.#host = host;
    this.#progress = new Float64Array(progress, host.node * 16, 2);
  }

  /**
   * Starts a program now, or once the driver has probed the device.
   * @throws ConfigurationError if no core is free
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
    const program = host.runProgram(
      order.name,
      core,
      async (hostContext) => {
        await this.#host.untilBooted(hostContext.cpu);
        await this.#begin(loaded, run, order.args, hostContext);
      },
      process,
    );
    const loaded: Loaded = { order, program, hasBegun: false, result: undefined };
    this.#loaded.push(loaded);
  }

  async #begin(loaded: Loaded, run: ProgramFunction, args: JsonValue, context: HostContext): Promise<void> {
    loaded.hasBegun = true;
    const own = this.#contextOf({ ...loaded.order, args }, context);
    const result: unknown = await run(own);
    loaded.result = result === undefined ? undefined : jsonCopy("the program's result", result);
  }

  /** Whether no program has begun: each waits for the driver or has just been woken by it. */
  get isWaiting(): boolean {
    return this.#loaded.every(({ hasBegun }) => !hasBegun);
  }

  /** Starts a program with this code and these arguments in a host restored to its booted state. */
  beginAs(number: number, run: ProgramFunction, args: JsonValue): void {
    const loaded = this.#loaded.find(({ order }) => order.number === number);
    if (loaded === undefined)
      throw new ConfigurationError('program', number, 'the number of one of this host');
    loaded.program.continueAs(async (context) => {
      this.#host.passBooted();
      await this.#begin(loaded, run, args, context);
    });
  }

  /** Arguments of a program. */
  #contextOf(order: ProgramOrder, hostContext: HostContext): ProgramContext {
    const { host } = this.#host;
    const { cpu, process } = hostContext;
    return {
      name: order.name,
      node: this.#host.node,
      peers: this.#host.peers,
      links: this.#host.links,
      host,
      configuration: this.#host.config,
      process,
      cpu,
      memory: new ProgramMemory(hostContext.memory, cpu, this.#host.races),
      verbs: verbsOf(this.#host, hostContext),
      sockets: this.#host.nic?.socketsOf(process),
      nic: this.#host.nic,
      meter: this.#host.meter,
      args: order.args,
      exchange: this.#exchangeOf(cpu),
      fork: (name, run) => this.#fork(order, hostContext, name, run),
      operation: (name, stretch) => this.#markedOperations(name).run(cpu, order.name, name, stretch),
      random: new Random(this.#host.config.machine.seed, `program.${order.name}`),
      log: (given) => {
        const text = typeof given === 'string' ? given : textOfThrown(given);
        this.log.push({ node: this.#host.node, atPs: cpu.instantPs, program: order.name, text });
        this.onLog?.(text);
      },
      progress: (done, total) => this.#reportProgress(done, total),
    };
  }

  #exchangeOf(cpu: CoreThread): Exchange {
    const exchange = this.#host.exchange.of(cpu);
    const { journal } = this.#host;
    if (journal === undefined) return exchange;
    return {
      ...exchange,
      take: <Value>(name: string) => {
        journal.waits(cpu, 'exchange', name);
        return exchange.take<Value>(name);
      },
    };
  }

  #markedOperations(name: string): MarkedOperations {
    const { marked } = this.#host;
    if (marked !== undefined) return marked;
    throw new ConfigurationError(
      `operation ${name}`,
      'marked',
      'in a machine made with { attributesCosts: true }',
    );
  }

  /** fork(2): the child runs `run` on the first core without a program, with a copy of the parent's memory. */
  #fork(order: ProgramOrder, parent: HostContext, name: string, run: ProgramFunction): Process | 'ENOMEM' {
    const { host } = this.#host;
    const core = host.cores.findIndex(({ programName }) => programName === undefined);
    if (core < 0)
      throw new ConfigurationError(
        `programs on host ${this.#host.node}`,
        host.cores.length + 1,
        `at most host.core.count (${host.cores.length}): one for each core`,
      );
    const child = host.fork(parent.cpu, parent.process, name, core, async (context) => {
      await run(this.#contextOf({ ...order, name }, context));
    });
    if (child === 'ENOMEM') return child;
    this.#processes.set(name, child.process);
    return child.process;
  }

  /** The process of this name, while or after it runs; undefined if none existed. */
  processNamed(name: string): Process | undefined {
    return this.#processes.get(name);
  }

  /** Outcome of each program, in the order in which they were loaded. */
  states(): ProgramState[] {
    return this.#loaded.map(({ order, program, result }) => ({
      number: order.number,
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
