/**
 * The rest of a card that does not exist (toy-personality.ts), for specs: commands in a queue with chains of mailboxes, contexts and keys
 * in pages that the firmware owns and arranges, all of it little-endian.
 *
 *     BAR0         0: address of the command entry     4: doorbell
 *     entry        owner, 1 is the device's | letter | status | 0 || object number || first mailbox || input bytes
 *     mailbox      address of the next || 64 bytes
 *     commands     P gives pages · K makes a key · C makes a CQ · Q makes a QP · M changes a QP · D destroys a QP
 *     pages        first the keys, second the translations, third the contexts, in the order in which their objects were made
 */
import { addressPath } from '../../../abi/address-path.ts';
import { CommandStatus } from '../../../abi/command-status.ts';
import { QpState } from '../../../abi/qpc.ts';
import { viewOf } from '../../../base/index.ts';
import {
  CommandRejection,
  type CommandRequest,
  type CommandSource,
  type Commands,
  demand,
  read,
  type Steps,
  until,
  wait,
  write,
} from '../commands/index.ts';
import type {
  CommandSet,
  CommandSetParts,
  CommandSetPorts,
  CompletionQueueFormat,
  EventQueueFormat,
  KeyFormat,
  Personality,
  QueuePairFormat,
  RegisterSpace,
  SharedQueueFormat,
  TranslationFormat,
} from '../host-interface/index.ts';
import { type ContextMemory, KeyState } from '../memory/index.ts';
import { toyWork } from './toy-personality.ts';

const ENTRY_BYTES = 24;
const MAILBOX_DATA_BYTES = 64;
const CONTEXT_BYTES = 64;
const KEYS = 64;
const PAGE_BYTES = 4096;
const LOG_PAGE_BYTES = 12;
/** Addresses of pages in commands begin here. */
const CQ_HEAD_BYTES = 16;
const QP_HEAD_BYTES = 24;
const KEY_HEAD_BYTES = 32;

/** Pages that software has given, and the places that the firmware has made of them. */
class ToyMemory implements ContextMemory {
  readonly pages: number[] = [];
  readonly keyCount = KEYS;
  readonly #contexts = new Map<string, number>();
  #nextTranslation = 0;
  nextKeyIndex = 1;

  get mappedPageCount(): number {
    return this.pages.length;
  }

  contextAddress(kind: string, objectNumber: number): number {
    const place = this.#contexts.get(`${kind} ${objectNumber}`);
    return place === undefined ? -1 : this.pages[2]! + place * CONTEXT_BYTES;
  }

  keyAddress(index: number): number {
    return this.pages.length === 0 ? -1 : this.pages[0]! + (index % KEYS) * CONTEXT_BYTES;
  }

  translationAddress(offset: number): number {
    return this.pages.length < 2 || offset >= PAGE_BYTES ? -1 : this.pages[1]! + offset;
  }

  placeContext(kind: string, objectNumber: number): void {
    this.#contexts.set(`${kind} ${objectNumber}`, this.#contexts.size);
  }

  /** Returns the offset of room for this many translations. */
  takeTranslations(count: number): number {
    const offset = this.#nextTranslation;
    this.#nextTranslation += count * 8;
    return offset;
  }
}

/** QPs: state | log of WQEs | GRH || QPN || send CQN || receive CQN || PD || translations || record || peer's QPN, LID || GID || PSNs. */
const queuePairs: QueuePairFormat = {
  contextBytes: CONTEXT_BYTES,
  // The path is kept after the context, since the engines read it in another form.
  storedBytes: CONTEXT_BYTES + addressPath.sizeBytes,
  pathOffset: CONTEXT_BYTES,

  load(view, at, pair, previousState, connections) {
    pair.state = view.getUint8(at);
    pair.sqLogCount = view.getUint8(at + 1);
    pair.rqLogCount = pair.sqLogCount;
    pair.hasGrh = view.getUint8(at + 2);
    pair.qpn = view.getUint32(at + 4, true);
    pair.sendCqn = view.getUint32(at + 8, true);
    pair.receiveCqn = view.getUint32(at + 12, true);
    pair.pd = view.getUint32(at + 16, true);
    pair.bufferMttOffset = view.getUint32(at + 20, true);
    pair.doorbellRecord = Number(view.getBigUint64(at + 24, true));
    pair.remoteQpn = view.getUint32(at + 32, true);
    pair.remoteLid = view.getUint32(at + 36, true);
    const gid = new Uint8Array(view.buffer, view.byteOffset + at + 40, 16);
    const path = addressPath.encode({
      remoteLid: pair.remoteLid,
      grhPresent: pair.hasGrh === 1 ? 1 : 0,
      remoteGid: gid.slice(),
      hopLimit: 3,
    });
    new Uint8Array(view.buffer, view.byteOffset + at + CONTEXT_BYTES, path.length).set(path);
    pair.srqn = -1;
    pair.hasReceiveQueue = 1;
    pair.bufferPageBytes = PAGE_BYTES;
    pair.sqStrideBytes = 64;
    pair.rqStrideBytes = 64;
    pair.sqOffset = 0;
    pair.rqOffset = 64 * 2 ** pair.sqLogCount;
    pair.mtuBytes = 1024;
    pair.messageBytesMax = 2 ** 31;
    pair.ackRequestEvery = 1;
    pair.readsOutstandingMax = 4;
    pair.readResourcesMax = 4;
    pair.remoteRights = 7;
    if (previousState === QpState.INIT) connections.startReceiving(pair.slot, view.getUint32(at + 60, true));
    if (previousState === QpState.RTR) connections.startSending(pair.slot, view.getUint32(at + 56, true));
  },

  sync(view, at, pair, connections) {
    const { nextSend, nextReceive } = connections.numbersOf(pair.slot);
    view.setUint8(at, pair.state);
    view.setUint32(at + 56, nextSend, true);
    view.setUint32(at + 60, nextReceive, true);
  },

  receiveCqnAt: (view, at) => view.getUint32(at + 12, true),
  flowCounterAt: () => 0,
};

/** CQs: log of CQEs || EQN || translations || status || record || producer || consumer. */
const completionQueues: CompletionQueueFormat = {
  contextBytes: CONTEXT_BYTES,
  load(view, at, queue) {
    queue.logEntries = view.getUint32(at, true);
    queue.eqn = view.getUint32(at + 4, true);
    queue.mttOffset = view.getUint32(at + 8, true);
    queue.doorbellRecord = Number(view.getBigUint64(at + 16, true));
    queue.pageBytes = PAGE_BYTES;
  },
  sync(view, at, queue) {
    view.setUint32(at + 12, queue.status, true);
    view.setUint32(at + 24, queue.producer, true);
    view.setUint32(at + 28, queue.consumer, true);
  },
};

/** The toy has no SRQs, and no commands for EQs. */
const absent = (): never => {
  throw new RangeError('the toy has none');
};
const sharedQueues: SharedQueueFormat = { contextBytes: CONTEXT_BYTES, load: absent, sync: absent };
const eventQueues: EventQueueFormat = { contextBytes: CONTEXT_BYTES, load: absent, sync: absent };

const VALID = 7;
const FREE = 5;

/** Keys: state || key || PD || rights || start || bytes || translations || place of the first byte in its page. Each may be invalidated. */
const keys: KeyFormat = {
  entryBytes: CONTEXT_BYTES,
  load(view, at, record) {
    const state = view.getUint8(at);
    const others = state === FREE ? KeyState.FREE : KeyState.SOFTWARE;
    record.state = state === VALID ? KeyState.VALID : others;
    record.key = view.getUint32(at + 4, true);
    record.pd = view.getUint32(at + 8, true);
    record.rights = view.getUint32(at + 12, true);
    record.start = Number(view.getBigUint64(at + 16, true));
    record.startTop = 0;
    record.lengthBytes = Number(view.getBigUint64(at + 24, true));
    record.translationOffset = view.getUint32(at + 32, true);
    record.firstByteOffset = view.getUint32(at + 36, true);
    record.hasFirstByteOffset = true;
    record.logPageBytes = LOG_PAGE_BYTES;
    record.isRegion = true;
    record.allowsLocalInvalidate = true;
  },
  store(view, at, { state }) {
    view.setUint8(at, state === KeyState.VALID ? VALID : FREE);
  },
};

const PRESENT = 2n;

const translations: TranslationFormat = {
  pageAt: (view, at) => {
    const entry = view.getBigUint64(at, true);
    return (entry & PRESENT) === 0n ? -1 : Number(entry & ~PRESENT);
  },
};

/** The command being carried out. Its opcode is known when its entry has been read. */
class ToyCommand implements CommandRequest {
  opcode = 0;
  readonly opcodeModifier = 0;
  readonly inputModifier = 0;
  readonly inParamHigh = 0;
  readonly inParamLow: number;
  readonly outParamHigh = 0;
  readonly outParamLow = 0;
  readonly token = 0;
  readonly byEvent = false;

  constructor(entryAddress: number) {
    this.inParamLow = entryAddress;
  }
}

/** One command at a time. Its status is in its entry, also when it was rejected. */
class ToyCommandSet implements CommandSet {
  readonly specialQpBase = 0;
  readonly source: CommandSource;
  readonly commands: Commands;
  readonly registers: RegisterSpace;
  readonly #parts: Pick<CommandSetParts, 'qps' | 'cqs'>;
  readonly #memory: ToyMemory;
  #ports!: Pick<CommandSetPorts, 'dataPath' | 'processor'>;
  #entryAddress = 0;
  #isPosted = false;
  #command = new ToyCommand(0);
  #nextNumber = 0x100;

  constructor(parts: Pick<CommandSetParts, 'qps' | 'cqs'>, memory: ToyMemory) {
    this.#parts = parts;
    this.#memory = memory;
    const isPosted = (): boolean => this.#isPosted;
    this.source = {
      get isPosted() {
        return isPosted();
      },
      latch: () => this.#latch(),
      complete: () => undefined,
    };
    this.commands = { start: () => ({ steps: this.#run(this.#command), cycles: 1 }) };
    this.registers = {
      isOwnerStuck: false,
      isSemaphoreStuck: false,
      observeResets: () => undefined,
      setCatastrophicError: () => undefined,
      read: () => undefined,
      write: (offset, bytes, at, _length, cycle) => {
        if (offset === 0) this.#entryAddress = bytes.getUint32(at, true);
        else {
          this.#isPosted = true;
          this.#ports.processor.posted(cycle);
        }
      },
    };
  }

  connect(ports: Pick<CommandSetPorts, 'dataPath' | 'processor'>): void {
    this.#ports = ports;
  }

  reset(): void {
    this.#isPosted = false;
  }

  inspect(): Record<string, never> {
    return {};
  }

  #latch(): CommandRequest {
    this.#isPosted = false;
    this.#command = new ToyCommand(this.#entryAddress);
    return this.#command;
  }

  *#run(command: ToyCommand): Steps<undefined> {
    const entry = yield* read(command.inParamLow, ENTRY_BYTES);
    const view = viewOf(entry);
    command.opcode = view.getUint8(1);
    try {
      const input = viewOf(yield* readChain(Number(view.getBigUint64(8, true)), view.getUint32(16, true)));
      const number = yield* this.#carryOut(command.opcode, view.getUint32(4, true), input);
      view.setUint32(4, number, true);
      view.setUint8(2, CommandStatus.OK);
    } catch (cause) {
      if (!(cause instanceof CommandRejection)) throw cause;
      view.setUint8(2, cause.status);
    }
    view.setUint8(0, 0);
    yield* write(command.inParamLow, entry.subarray(0, 8));
    return undefined;
  }

  *#carryOut(opcode: number, number: number, input: DataView): Steps<number> {
    yield* wait(20);
    switch (String.fromCharCode(opcode)) {
      case 'P':
        this.#memory.pages.push(...pagesFrom(input, 0));
        return 0;
      case 'K':
        return yield* this.#makeKey(input);
      case 'C':
        return yield* this.#makeCq(input);
      case 'Q':
        return yield* this.#makeQp(input);
      case 'M':
        return this.#changeQp(number, input);
      case 'D':
        return yield* this.#destroyQp(number);
      default:
        throw new CommandRejection(CommandStatus.BAD_OP);
    }
  }

  *#makeKey(input: DataView): Steps<number> {
    const index = this.#memory.nextKeyIndex++;
    const key = index << 8;
    const entry = new Uint8Array(CONTEXT_BYTES);
    const view = viewOf(entry);
    view.setUint8(0, VALID);
    view.setUint32(4, key, true);
    for (const at of [0, 4]) view.setUint32(8 + at, input.getUint32(at, true), true);
    for (const at of [8, 16]) view.setBigUint64(8 + at, input.getBigUint64(at, true), true);
    view.setUint32(36, input.getUint32(24, true), true);
    view.setUint32(32, yield* this.#translate(pagesFrom(input, KEY_HEAD_BYTES)), true);
    yield* write(this.#memory.keyAddress(index), entry);
    this.#ports.dataPath.mptChanged(index);
    return key;
  }

  *#makeCq(input: DataView): Steps<number> {
    const { cqs } = this.#parts;
    const mttOffset = yield* this.#translate(pagesFrom(input, CQ_HEAD_BYTES));
    const cqn = this.#nextNumber++;
    this.#memory.placeContext('cqc', cqn);
    const slot = cqs.allocate(cqn);
    const at = cqs.offsetOf(slot);
    cqs.view.setUint32(at, input.getUint32(0, true), true);
    cqs.view.setUint32(at + 4, input.getUint32(4, true), true);
    cqs.view.setUint32(at + 8, mttOffset, true);
    cqs.view.setBigUint64(at + 16, input.getBigUint64(8, true), true);
    this.#ports.dataPath.cqCreated(slot);
    return cqn;
  }

  *#makeQp(input: DataView): Steps<number> {
    const { qps, cqs } = this.#parts;
    const word = (at: number): number => input.getUint32(at, true);
    demand(cqs.slotOf(word(0)) >= 0 && cqs.slotOf(word(4)) >= 0, CommandStatus.BAD_RESOURCE);
    const mttOffset = yield* this.#translate(pagesFrom(input, QP_HEAD_BYTES));
    const qpn = this.#nextNumber++;
    this.#memory.placeContext('qpc', qpn);
    const slot = qps.allocate(qpn);
    const at = qps.offsetOf(slot);
    qps.view.setUint8(at, QpState.INIT);
    qps.view.setUint8(at + 1, word(8));
    for (const [place, value] of [qpn, word(0), word(4), word(12), mttOffset].entries())
      qps.view.setUint32(at + 4 + 4 * place, value, true);
    qps.view.setBigUint64(at + 24, input.getBigUint64(16, true), true);
    this.#ports.dataPath.qpCreated(slot);
    return qpn;
  }

  /** State || peer's QPN || LID || PSNs of this side and of the peer || with a GRH || GID. */
  #changeQp(qpn: number, input: DataView): number {
    const { qps } = this.#parts;
    const slot = qps.slotOf(qpn);
    demand(slot >= 0, CommandStatus.BAD_QP_STATE);
    this.#ports.dataPath.qpSync(slot);
    const at = qps.offsetOf(slot);
    const previous = qps.view.getUint8(at);
    qps.view.setUint8(at, input.getUint32(0, true));
    qps.view.setUint8(at + 2, input.getUint32(20, true));
    qps.view.setUint32(at + 32, input.getUint32(4, true), true);
    qps.view.setUint32(at + 36, input.getUint32(8, true), true);
    for (let byte = 0; byte < 16; byte++) qps.view.setUint8(at + 40 + byte, input.getUint8(24 + byte));
    if (previous === QpState.INIT) qps.view.setUint32(at + 60, input.getUint32(16, true), true);
    if (previous === QpState.RTR) qps.view.setUint32(at + 56, input.getUint32(12, true), true);
    this.#ports.dataPath.qpModified(slot, previous);
    return qpn;
  }

  *#destroyQp(qpn: number): Steps<number> {
    const { qps } = this.#parts;
    const { dataPath } = this.#ports;
    const slot = qps.slotOf(qpn);
    demand(slot >= 0, CommandStatus.BAD_QP_STATE);
    dataPath.qpDestroyed(slot);
    dataPath.beginFence();
    yield* until(() => !dataPath.qpIsBusy(slot) && dataPath.isFencePassed());
    qps.free(slot);
    return qpn;
  }

  /** Writes translations of pages, and returns their offset. */
  *#translate(pages: readonly number[]): Steps<number> {
    const offset = this.#memory.takeTranslations(pages.length);
    const entries = new Uint8Array(pages.length * 8);
    for (const [index, page] of pages.entries())
      viewOf(entries).setBigUint64(index * 8, BigInt(page) | PRESENT, true);
    yield* write(this.#memory.translationAddress(offset), entries);
    return offset;
  }
}

/** The input of a command out of its chain of mailboxes. */
function* readChain(first: number, lengthBytes: number): Steps<Uint8Array> {
  const input = new Uint8Array(lengthBytes);
  let address = first;
  for (let at = 0; at < lengthBytes; at += MAILBOX_DATA_BYTES) {
    const mailbox = yield* read(address, 8 + MAILBOX_DATA_BYTES);
    input.set(mailbox.subarray(8, 8 + Math.min(MAILBOX_DATA_BYTES, lengthBytes - at)), at);
    address = Number(viewOf(mailbox).getBigUint64(0, true));
  }
  return input;
}

function pagesFrom(input: DataView, first: number): number[] {
  const pages: number[] = [];
  for (let at = first; at < input.byteLength; at += 8) pages.push(Number(input.getBigUint64(at, true)));
  return pages;
}

export interface ToyCard extends Personality {
  makeCommandSet(parts: Pick<CommandSetParts, 'qps' | 'cqs'>): ToyCommandSet;
}

/** A whole card: none of its parts belongs to the ConnectX-3. */
export function toyCard(): ToyCard {
  const memory = new ToyMemory();
  return {
    ...toyWork,
    gatewayAddress: 0,
    contextMemory: memory,
    keys,
    translations,
    fillPatterns: [],
    makeContextFormats: () => ({ queuePairs, completionQueues, sharedQueues, eventQueues }),
    makeCommandSet: (parts) => new ToyCommandSet(parts, memory),
  };
}
