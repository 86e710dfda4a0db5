/**
 * A protocol analyser between a host and its HCA. It sees the traffic of the root complex, may read host memory, and
 * knows the interface sheet. It reports events and errors of the driver, and changes nothing.
 *
 *     LinkTap ─► config-follower.ts                    BARs
 *             ─► register-follower.ts ─► command-register   commands ─┐
 *             ─► uar.ts                             doorbells ├─► device-view ─► lint/
 *             ─► dma.ts ─► work-queues, completions WQE, CQE ─┘          └─► trace ─► file
 *
 *     const analyser = new Analyser({ node: 'host0', memory, trace: { categories, filters, format, sink }, lint: true });
 *     attachTap(rootComplex, analyser);          // …run…
 *     analyser.close(); analyser.findings;
 */
import { Bar, commandStatusName } from '../abi/index.ts';
import type { TextSink } from '../base/index.ts';
import {
  CONFIG_READ,
  CONFIG_WRITE,
  type DeviceFault,
  type LinkTap,
  type TappedCompletion,
  type TappedData,
  type TappedRequest,
} from '../hw/pcie/index.ts';
import { inBoxOf, madPartsOf, objectsOf, outBoxOf } from './command-boxes.ts';
import { CompletionFollower } from './completion-follower.ts';
import { ConfigFollower, type PlacedBar } from './config-follower.ts';
import { classNameOf, DmaFollower } from './dma.ts';
import { TraceFilter } from './filter.ts';
import { CommandRegister, type ObservedCommand } from './follow/command-register.ts';
import { Connections } from './follow/connections.ts';
import { DeviceView } from './follow/device-view.ts';
import { hasTcpConnections } from './follow/icm-map.ts';
import type { MemoryReader } from './host-memory-reader.ts';
import { fieldsSetIn } from './layout-fields.ts';
import { type Finding, Findings } from './lint/findings.ts';
import { Linter } from './lint/linter.ts';
import { RegisterFollower } from './register-follower.ts';
import { Trace } from './trace.ts';
import { hex, type InstantOf, type TraceCategory, type TraceSection } from './trace-event.ts';
import { nsText, type TraceFormat } from './trace-text.ts';
import { UarFollower } from './uar.ts';
import { WorkQueueFollower } from './work-queue-follower.ts';

interface TraceChoice {
  readonly categories: readonly TraceCategory[];
  /** See filter.ts. */
  readonly filters?: readonly string[];
  readonly format?: TraceFormat;
  readonly sink: TextSink;
}

export interface AnalyserOptions {
  /** Name of this side in the lines of the trace: `host0`. */
  readonly node: string;
  readonly memory: MemoryReader;
  /** Options of the trace; without them the analyser writes no trace. */
  readonly trace?: TraceChoice;
  /** Whether the linter checks the driver against the rules; default true. */
  readonly lint?: boolean;
  /** Called with each finding when it is made. */
  readonly onFinding?: (finding: Finding) => void;
  /** Places of the BARs, for a bus whose tap does not see their configuration. */
  readonly bars?: readonly PlacedBar[];
  /** Returns the MSI-X vector of a message, or -1 if unknown; for a table that a hypervisor keeps and that is not written through BAR0. */
  readonly vectorOf?: (address: number, data: number) => number;
  /** Called with each command when it has finished or was abandoned. */
  readonly onCommand?: (command: ObservedCommand) => void;
  /** Converts the tap's `nowPs` to picoseconds since power-on; default: they are equal. */
  readonly instantOf?: InstantOf;
}

export class Analyser implements LinkTap {
  readonly view: DeviceView;
  readonly connections: Connections;
  readonly #trace: Trace;
  readonly #findings: Findings;
  readonly #linter: Linter | undefined;
  readonly #config: ConfigFollower;
  readonly #commands: CommandRegister;
  readonly #registers: RegisterFollower;
  readonly #uar: UarFollower;
  readonly #dma: DmaFollower;
  readonly #vectorOf: ((address: number, data: number) => number) | undefined;
  readonly #onCommand: ((command: ObservedCommand) => void) | undefined;
  readonly #requests = new Map<number, TappedRequest>();
  #lastPs = 0;

  /** @throws ConfigurationError for a filter that cannot be read */
  constructor(options: AnalyserOptions) {
    const { node, memory, trace, lint = true, onFinding, bars, vectorOf, onCommand, instantOf } = options;
    const filter = trace === undefined ? undefined : new TraceFilter(trace.categories, trace.filters);
    this.#trace = new Trace(node, filter, trace?.sink, trace?.format ?? 'text', instantOf);
    this.view = new DeviceView(memory);
    this.connections = new Connections(instantOf ?? ((ps) => ps));
    this.#findings = new Findings(node, onFinding, instantOf);
    this.#linter = lint ? new Linter(this.view, memory, this.#findings) : undefined;
    this.#commands = new CommandRegister(memory, this);
    this.#config = new ConfigFollower(this.#trace, (why, nowPs) => this.reset(why, nowPs));
    if (bars !== undefined) this.#config.give(bars);
    this.#registers = new RegisterFollower(this.#trace, this.view, this.#commands, this);
    this.#uar = new UarFollower(this.#trace, this.view, this.#linter);
    const workQueues = new WorkQueueFollower(this.#trace, this.view, memory, this.#linter);
    const completions = new CompletionFollower(this.#trace, this.view, this.#commands);
    this.#dma = new DmaFollower(this.#trace, this.view, this.#linter, workQueues, completions);
    this.#vectorOf = vectorOf;
    this.#onCommand = onCommand;
  }

  /** Findings of the linter so far. */
  get findings(): readonly Finding[] {
    return this.#findings.list;
  }

  get eventCount(): number {
    return this.#trace.eventCount;
  }

  /** Sets the places of the BARs. */
  placeBars(bars: readonly PlacedBar[]): void {
    this.#config.give(bars);
  }

  /** Starts a new epoch: subtracts `ps` from every stored time. */
  rebase(ps: number): void {
    this.#lastPs -= ps;
    this.#registers.rebase(ps);
    this.#commands.rebase(ps);
  }

  /** Ends the trace: writes the commands that have no answer and closes the sink. */
  close(): void {
    this.#registers.flush(this.#lastPs);
    this.#commands.reset();
    this.#trace.close();
  }

  /** Forgets all objects of the device after a reset by a register or by the slot. */
  reset(why: string, nowPs: number): void {
    this.#linter?.reset(why, nowPs);
    this.#commands.reset();
    this.view.reset();
    this.connections.reset(nowPs);
    this.#uar.reset();
    this.#dma.reset();
  }

  // The tap on the link.

  store(address: number, source: Uint8Array, offset: number, lengthBytes: number, nowPs: number): void {
    this.#lastPs = nowPs;
    const bytes = source.slice(offset, offset + lengthBytes);
    const place = this.#barAt(address);
    if (place?.bar === Bar.CONFIGURATION)
      this.#registers.store(address - place.address, address, bytes, nowPs);
    else if (place?.bar === Bar.UAR) this.#uar.store(address - place.address, address, bytes, nowPs);
    else
      this.#trace.emit('mmio', nowPs, `store of ${lengthBytes} bytes at ${hex(address)}, in no BAR`, {
        address,
        lengthBytes,
      });
  }

  request(request: TappedRequest, nowPs: number): void {
    const { tag, kind, target, address, lengthBytes, value } = request;
    this.#lastPs = nowPs;
    this.#requests.set(tag, request);
    if (kind === CONFIG_WRITE) this.#config.write(target, address, lengthBytes, value, nowPs);
  }

  completion(tag: number, status: number, value: number, nowPs: number): void {
    this.#lastPs = nowPs;
    const request = this.#requests.get(tag);
    if (request === undefined) return;
    this.#requests.delete(tag);
    const { kind, target, address, lengthBytes } = request;
    if (kind === CONFIG_READ) return this.#config.read(target, address, status, value, nowPs);
    if (kind === CONFIG_WRITE) return;
    const place = this.#barAt(address);
    if (place?.bar === Bar.CONFIGURATION)
      this.#registers.load(address - place.address, address, lengthBytes, status, value, nowPs);
    else {
      const where = place === undefined ? 'in no BAR' : `BAR${place.bar} ${hex(address - place.address)}`;
      this.#trace.emit('mmio', nowPs, `load at ${hex(address)}, ${where}, reads ${hex(value)}`, {
        address,
        lengthBytes,
      });
    }
  }

  deviceWrite(data: TappedData, nowPs: number): void {
    this.#lastPs = nowPs;
    this.#dma.write(data, nowPs);
  }

  deviceRead(completion: TappedCompletion, nowPs: number): void {
    this.#lastPs = nowPs;
    this.#dma.completion(completion, nowPs);
  }

  refused(
    fault: DeviceFault,
    address: number,
    lengthBytes: number,
    trafficClass: number,
    nowPs: number,
  ): void {
    this.#lastPs = nowPs;
    const what = `${classNameOf(trafficClass)} ${fault === 'writeOutsideMemory' ? 'write' : 'read'}`;
    this.#trace.emit('dma', nowPs, `${what} refused (${fault}): ${lengthBytes} bytes at ${hex(address)}`, {
      address,
      lengthBytes,
    });
    if (fault !== 'writeOutsideMemory' && fault !== 'readOutsideMemory') return;
    const place = this.view.buffers.find(address);
    const object =
      place === undefined ? classNameOf(trafficClass) : `${place.kind.toUpperCase()} ${hex(place.number)}`;
    this.#linter?.dmaOutside(what, object, address, lengthBytes, nowPs);
  }

  message(address: number, data: number, nowPs: number): void {
    this.#lastPs = nowPs;
    if (!this.#trace.wants('interrupts')) return;
    const vector = this.#vectorOf?.(address, data) ?? this.#registers.vectorOf(address, data);
    const eq = [...this.view.eqs.values()].find(({ context }) => context.interruptNumber === vector);
    const name = vector < 0 ? 'MSI-X message of no known vector' : `MSI-X vector ${vector}`;
    const of = eq === undefined ? '' : ` (EQ ${hex(eq.eqn)})`;
    this.#trace.emit('interrupts', nowPs, `${name}${of}: ${hex(data)} to ${hex(address)}`, {
      objects: { ...(vector < 0 ? {} : { vector }), ...(eq === undefined ? {} : { eqn: eq.eqn }) },
      address,
      lengthBytes: 4,
    });
  }

  intx(pin: number, isAsserted: boolean, nowPs: number): void {
    this.#lastPs = nowPs;
    this.#trace.emit('interrupts', nowPs, `INT${'ABCD'[pin]} ${isAsserted ? 'asserted' : 'released'}`);
  }

  // Events that the followers report.

  hcrAccess(lengthBytes: number, nowPs: number): void {
    this.#linter?.hcrAccess(lengthBytes, nowPs);
  }

  released(nowPs: number): void {
    // A device that does not answer cannot return an object to the driver.
    if (!this.view.isGone && !this.#commands.isWaiting) this.#linter?.released(nowPs);
  }

  commandPosted(command: ObservedCommand, before: ObservedCommand | undefined): void {
    this.#linter?.commandPosted(command, before);
    this.view.posted(command);
  }

  commandFinished(command: ObservedCommand): void {
    this.#linter?.commandFinished(command);
    if (command.status === 0) this.view.apply(command);
    else this.view.refused(command);
    this.connections.finished(command);
    this.#onCommand?.(command);
    if (!this.#trace.wants('commands')) return;
    const { name, opcode, inputModifier, opcodeModifier, token, isByEvent, postedPs } = command;
    const words = command.row?.inputModifier;
    const meaning =
      words !== undefined && /^[A-Za-z]/.test(words) && !words.startsWith('see ') ? ` (${words})` : '';
    const opMod = opcodeModifier === 0 ? '' : ` op_mod ${opcodeModifier}`;
    const how = isByEvent ? ` token ${hex(token)}` : ' polled';
    const outcome =
      command.status < 0
        ? 'NO ANSWER'
        : `${commandStatusName(command.status)}, ${nsText(command.finishedPs - postedPs)}`;
    const title = `${name ?? `opcode ${hex(opcode)}`} in_mod ${hex(inputModifier)}${meaning}${opMod}${how}: ${outcome}`;
    this.#trace.emit('commands', command.status < 0 ? this.#lastPs : command.finishedPs, title, {
      objects: name === undefined ? {} : objectsOf({ ...command, name }),
      command: name ?? hex(opcode),
      sections: boxSections(command, hasTcpConnections(this.view.profile)),
    });
  }

  #barAt(address: number): PlacedBar | undefined {
    for (const bar of [Bar.UAR, Bar.CONFIGURATION]) {
      const place = this.#config.placeOf(bar);
      if (place !== undefined && address >= place.address && address < place.address + place.sizeBytes)
        return place;
    }
    return undefined;
  }
}

/** Mailboxes and immediate values of a command, field by field. */
function boxSections(command: ObservedCommand, hasConnections: boolean): TraceSection[] {
  const { name, row, inBox, outBox, inParam, immediate, status } = command;
  if (name === undefined) return [];
  const sections: TraceSection[] = [];
  const value = (title: string, of: number | bigint): void => {
    sections.push({ title, fields: [{ name: 'value', value: hex(of), valueName: undefined }] });
  };
  if (inBox !== undefined) {
    const parts =
      name === 'MAD_IFC' ? madPartsOf(inBox) : inBoxOf({ ...command, name }, inBox, hasConnections);
    for (const { title, layout, offset } of parts)
      sections.push({ title: `in ${title}`, fields: fieldsSetIn(layout, inBox, offset) });
  } else if (row?.input === 'immediate' || (row?.input === 'optionalImmediate' && inParam !== 0))
    value('in value', inParam);
  if (outBox !== undefined) {
    const parts = name === 'MAD_IFC' ? madPartsOf(outBox) : outBoxOf({ ...command, name }, outBox);
    for (const { title, layout, offset } of parts)
      sections.push({ title: `out ${title}`, fields: fieldsSetIn(layout, outBox, offset) });
  } else if (row?.output === 'immediate' && status === 0) value('out value', immediate);
  return sections;
}
