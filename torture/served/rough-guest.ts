/**
 * A guest's machine that keeps to no rule: messages of any form, any access, commands with any mailbox, contexts and work
 * requests that are odd, doorbells without reason. Everything follows from the seed, and what was done is written down.
 *
 * Each life leaves out a random half of the kinds (swarm testing), begins at a random stage of a driver's bring-up, and
 * mixes nonsense with what is nearly right, which gets further. Stores and loads are sent several at once, as they come
 * from a machine of many cores; a device that has lost its state is mostly brought up again.
 */
import { bar0, type CommandName, CommandStatus } from '../../abi/index.ts';
import { Command, NativeCallError, REGION_BAR0, REGION_CONFIG } from '../../guests/slot/index.ts';
import type { Random } from '../../sim/index.ts';
import { Bystander } from './bystander.ts';
import { Draw } from './draw.ts';
import { type GuestLife, initialMappings, NOT_ENDED, ramBytes, UNREACHABLE } from './guest-life.ts';
import { pageBytes } from './guest-ram.ts';
import { noteFields } from './hostile-fields.ts';
import { type Kind, kinds, kindTable, noCounts, noRoughCoverage, noteCommand } from './kinds.ts';
import {
  type RoughCommand,
  RoughCommands,
  recordArea,
  roughMtt,
  roughTranslations,
} from './rough-commands.ts';
import { closeDescriptors, drawMessage } from './rough-messages.ts';
import { RoughObjects } from './rough-objects.ts';
import { RoughWork } from './rough-work.ts';
import { icmAddress, type Stage, stages, WellBehavedGuest } from './well-behaved-guest.ts';

const registerOffsets = Object.values(bar0.registers)
  .map(({ offset }) => offset)
  .filter((offset) => offset !== bar0.registers.reset.offset);
const hcrOffset = bar0.registers.hcr.offset;
const hcrEnd = hcrOffset + 28;
/** Registers of configuration space: header, capabilities, extended capabilities. */
const configOffsets = [
  0x04, 0x06, 0x0c, 0x10, 0x14, 0x18, 0x1c, 0x30, 0x3c, 0x48, 0x4a, 0x6a, 0x88, 0x9c, 0x9e, 0x154, 0x158,
];
/**
 * Offsets of registers that can reset the function: power state, device control. A reset destroys everything that was
 * created.
 */
const resettingOffsets = [0x44, 0x68, 0x69];
const icmArea = { begin: 0x30_0000, bytes: 0x10_0000 } as const;
const queueArea = { begin: roughMtt.begin, bytes: roughMtt.count * pageBytes } as const;

interface Mapping {
  readonly address: number;
  readonly sizeBytes: number;
  readonly fileOffset: number;
  readonly writable: number;
}

export class RoughGuest {
  readonly counts = noCounts();
  readonly coverage = noRoughCoverage();
  /** The guest's last actions, oldest first. */
  readonly actions: string[] = [];
  /** The program in it that keeps to the rules. */
  readonly bystander: Bystander;
  readonly #life: GuestLife;
  readonly #random: Random;
  readonly #draw: Draw;
  readonly #objects: RoughObjects;
  readonly #commands: RoughCommands;
  readonly #work: RoughWork;
  readonly #weights: readonly (readonly [Kind, number])[];
  readonly #weightSum: number;
  #mappings: Mapping[] = initialMappings.map((mapping) => ({
    ...mapping,
    fileOffset: mapping.address,
    writable: 1,
  }));

  /**
   * @param forBystander draws for its bystander, so that the rest of the life does not depend on it
   * @param without kinds that are left out whatever the seed draws: to find what a finding needs
   */
  constructor(life: GuestLife, random: Random, forBystander: Random, without: readonly Kind[] = []) {
    this.#life = life;
    this.bystander = new Bystander(life, forBystander);
    this.#random = random;
    this.#draw = new Draw(random);
    this.#objects = new RoughObjects(this.#draw);
    this.#commands = new RoughCommands(this.#draw, this.#objects);
    this.#work = new RoughWork(this.#draw, this.#objects, life);
    life.patience = roughPatience;
    const weights = kinds.map((kind) => [kind, random.chance(0.4) ? 0 : kindTable[kind].weight] as const);
    const left = weights.filter(([kind, weight]) => weight > 0 && !without.includes(kind));
    this.#weights = left.length > 0 ? left : [['register', 1]];
    this.#weightSum = this.#weights.reduce((sum, [, weight]) => sum + weight, 0);
  }

  /** Begins like a driver, and then performs this many actions, or fewer if the server drops it. */
  live(actionCount: number): void {
    try {
      this.#life.attach();
      this.bystander.map();
      if (this.#random.chance(0.1)) {
        if (this.#random.chance(0.7)) this.#life.enable();
      } else this.#bringUp(this.#drawStage());
      for (let at = 0; at < actionCount; at++) {
        this.#act();
        if (at % stepsPerLook === 0) this.bystander.act();
        if (this.#random.chance(flushChance)) this.#life.synchronise();
      }
      this.#life.synchronise();
      this.#life.device.settle();
    } catch (error) {
      // The server has dropped the guest, which sent an invalid message.
      const isDropped = error instanceof NativeCallError || /closed the connection/.test(String(error));
      if (!isDropped && !(error instanceof LifeOver)) throw error;
      this.#note('dropped by the server');
    }
  }

  #act(): void {
    let left = this.#random.unit() * this.#weightSum;
    const [kind] =
      this.#weights.find(([, weight]) => {
        left -= weight;
        return left < 0;
      }) ?? this.#weights[0]!;
    this.#doers[kind]();
  }

  readonly #doers: Readonly<Record<Kind, () => void>> = {
    message: () => this.#sendMessages(),
    configuration: () => this.#some(() => this.#accessConfiguration()),
    register: () => this.#some(() => this.#accessRegister()),
    command: () => this.#send('command', this.#commands.any()),
    context: () => this.#send('context', this.#commands.withContext()),
    wqe: () => this.#postWork(),
    doorbell: () => this.#ring(),
    blueFlame: () => this.#postBlueFlame(),
    map: () => this.#changeMap(),
    interrupt: () => this.#changeInterrupts(),
    memory: () => this.#scribble(),
    time: () => this.#pass(),
    reset: () => this.#reset(),
  };

  // ---- bring-up ----

  #drawStage(): Stage {
    return this.#random.chance(0.7) ? 'queue pairs' : this.#draw.pick(stages);
  }

  #bringUp(last: Stage): void {
    const life = this.#life;
    this.#note(`a driver's stages up to "${last}"`);
    let isOdd = false;
    const driver = new WellBehavedGuest(life, { looksAround: false });
    if (this.#random.chance(0.3) && stages.indexOf(last) > stages.indexOf('memory')) {
      driver.run('memory');
      this.#objects.forget();
      // If the device refuses it, the driver repeats it correctly; otherwise it continues with an odd device.
      const status = this.#carryOut('command', this.#commands.initialise());
      isOdd = status === CommandStatus.OK;
      driver.run(last, isOdd ? 'event queue' : 'initialise');
    } else driver.run(last);
    this.#objects.broughtUp(last);
    if (!isOdd && stages.indexOf(last) >= stages.indexOf('completion queue'))
      this.bystander.create(driver.lid);
    life.put(icmAddress('mtt') + roughMtt.first * 8, roughTranslations());
  }

  // ---- messages ----

  #sendMessages(): void {
    const random = this.#random;
    const { client, device } = this.#life;
    for (let left = random.between(1, 3); left > 0; left--) {
      const { bytes, descriptors, isBroken, text, unmaps } = drawMessage(this.#draw);
      this.counts.message++;
      this.#note(text);
      try {
        client.send(bytes, descriptors);
        if (descriptors.length > 0) device.settle();
      } finally {
        closeDescriptors(descriptors);
      }
      if (isBroken) {
        device.settle();
        throw new LifeOver();
      }
      // The reply is not read; only this mapping, or all, can have been removed.
      const { address = -1, isAll = false } = unmaps ?? {};
      if (isAll || this.#mappings.some((mapping) => mapping.address === address)) {
        this.#life.synchronise();
        this.#forgetMap();
      }
    }
    this.#life.synchronise();
    this.#life.forgetToggle();
  }

  // ---- memory map and interrupts ----

  #changeMap(): void {
    const random = this.#random;
    const life = this.#life;
    life.synchronise();
    this.counts.map++;
    this.#hasOddMap = true;
    if (random.chance(0.5) && this.#mappings.length > 0) {
      const at = random.below(this.#mappings.length);
      const { address, sizeBytes, fileOffset, writable } = this.#mappings[at]!;
      const { errno } = life.client.unmap({ address: BigInt(address), sizeBytes: BigInt(sizeBytes) });
      this.#note(`unmap ${sizeBytes} at ${address}: ${errno}`);
      if (errno !== 0) return;
      this.#mappings.splice(at, 1);
      if (writable === 1) life.ram.unmapped(fileOffset, sizeBytes);
      if (random.chance(0.6)) this.#map(address, sizeBytes, fileOffset, random.chance(0.9) ? 1 : 0);
      return;
    }
    const pages = random.between(1, random.chance(0.9) ? 64 : ramBytes / pageBytes);
    const fileOffset = random.below(ramBytes / pageBytes - pages + 1) * pageBytes;
    const address = random.chance(0.6) ? fileOffset : random.below(4096) * pageBytes;
    this.#map(address, pages * pageBytes, fileOffset, random.chance(0.8) ? 1 : 0);
  }

  #map(address: number, sizeBytes: number, fileOffset: number, writable: number): void {
    const errno = this.#life.map(address, sizeBytes, fileOffset, writable);
    this.#note(`map ${sizeBytes} at ${address}: ${errno}`);
    if (errno === 0) this.#mappings.push({ address, sizeBytes, fileOffset, writable });
  }

  /** Memory is not mapped as it was at first. */
  #hasOddMap = false;

  /** From here on the mapped memory is unknown: all of it is unmapped, which the server must grant. */
  #forgetMap(): void {
    const life = this.#life;
    life.client.unmap({ all: 1 });
    this.bystander.unmapped();
    this.bystander.map();
    for (const { fileOffset, sizeBytes, writable } of this.#mappings)
      if (writable === 1) life.ram.unmapped(fileOffset, sizeBytes);
    this.#mappings = [];
    for (const { address, sizeBytes } of initialMappings) this.#map(address, sizeBytes, address, 1);
    this.#hasOddMap = false;
  }

  #changeInterrupts(): void {
    const random = this.#random;
    const { client, eventfds } = this.#life;
    this.#life.synchronise();
    this.counts.interrupt++;
    const index = random.below(3);
    const start = random.chance(0.7) ? random.below(4) : random.below(128);
    this.#note(`interrupts ${index}, ${start}`);
    if (random.chance(0.5)) client.setEventfds(index, start, 1, [eventfds[start % eventfds.length]!]);
    else client.actOnInterrupts(1 << random.below(3), index, start, random.below(4));
  }

  // ---- registers ----

  /** Performs one to three accesses, which arrive together. */
  #some(access: () => void): void {
    for (let left = this.#random.between(1, 3); left > 0; left--) access();
  }

  #accessConfiguration(): void {
    const random = this.#random;
    const life = this.#life;
    this.counts.configuration++;
    const chance = random.unit();
    const usual = chance < 0.02 ? resettingOffsets : configOffsets;
    const offset = chance < 0.7 ? this.#draw.pick(usual) : 0xa0 + random.below(4096 - 0xa8);
    const lengthBytes = this.#draw.pick([1, 2, 4]);
    if (random.chance(0.4)) {
      life.client.readLater(REGION_CONFIG, offset, lengthBytes);
      return;
    }
    const bytes = this.#draw.bytes(lengthBytes);
    this.#note(`configuration ${hex(offset)} = ${hexOf(bytes)}`);
    life.client.postLater(REGION_CONFIG, offset, bytes);
    // Without memory decoding and the addresses of its BARs it would reach nothing any more.
    if (offset + lengthBytes > 0x04 && offset < 0xa0 && random.chance(0.9)) life.enable();
  }

  #accessRegister(): void {
    const random = this.#random;
    const life = this.#life;
    this.counts.register++;
    const offset = random.chance(0.8)
      ? this.#draw.pick(registerOffsets) + 4 * random.below(7)
      : random.below(0x10_0000 - 64);
    if (random.chance(0.4)) {
      life.client.readLater(REGION_BAR0, offset, this.#draw.pick([1, 2, 4, 8, 64]));
      return;
    }
    const bytes = this.#draw.bytes(random.chance(0.8) ? 4 : random.between(1, 64));
    this.#note(`register ${hex(offset)} = ${hexOf(bytes)}`);
    life.client.postLater(REGION_BAR0, offset, bytes);
    if (offset < hcrEnd && offset + bytes.length > hcrOffset) life.forgetToggle();
  }

  // ---- commands ----

  #send(kind: 'command' | 'context', command: RoughCommand): void {
    const status = this.#carryOut(kind, command);
    if (status === undefined) return;
    if (status === UNREACHABLE) this.#life.enable();
    const { name } = command;
    const isReset = status === CommandStatus.BAD_SYS_STATE && !earlyCommands.has(name);
    const isLost = isReset && this.#random.chance(0.3);
    if (isLost || status === NOT_ENDED || status === UNREACHABLE) this.#recover(status);
  }

  /** Returns its status; undefined if its end was not awaited. */
  #carryOut(kind: 'command' | 'context', command: RoughCommand): number | undefined {
    const life = this.#life;
    const { name, opcode, inputModifier, opcodeModifier, inParam, inBox, outBytes, odd } = command;
    this.counts[kind]++;
    this.#note(textOf(command));
    const options = {
      inputModifier,
      opcodeModifier,
      inParam,
      ...(inBox === undefined ? {} : { inBox }),
      ...(outBytes === undefined ? {} : { outBytes }),
    };
    life.synchronise();
    if (this.#random.chance(0.1)) {
      life.post(opcode, options);
      return undefined;
    }
    const status = life.statusOf(opcode, options);
    noteCommand(this.coverage.commands, name ?? 'unknown', status);
    noteFields(this.coverage.fields, odd, status === CommandStatus.OK);
    if (status === CommandStatus.OK && name !== undefined) this.#objects.succeeded(name, inputModifier);
    return status;
  }

  /** Recovers a device that is not in a driver's state: it was reset, or it does not answer. */
  #recover(status: number): void {
    const life = this.#life;
    this.#note(`begins again after status ${status}`);
    if (this.#hasOddMap) this.#forgetMap();
    life.client.request(Command.DEVICE_RESET, new Uint8Array(0));
    this.#bringUp(this.#drawStage());
  }

  // ---- memory and work ----

  /** Writes random bytes anywhere in memory that the device reads. */
  #scribble(): void {
    const random = this.#random;
    this.counts.memory++;
    const area = this.#draw.pick([queueArea, queueArea, recordArea, icmArea, { begin: 0, bytes: ramBytes }]);
    const length = random.between(1, Math.min(64, area.bytes));
    this.#life.put(area.begin + random.below(area.bytes - length + 1), this.#draw.bytes(length));
  }

  #postWork(): void {
    const { requests, doorbells } = this.#work.post((text) => this.#note(text));
    this.counts.wqe += requests;
    this.counts.doorbell += doorbells;
  }

  #ring(): void {
    const count = this.#random.between(1, 4);
    for (let at = 0; at < count; at++) this.#work.ring((text) => this.#note(text));
    this.counts.doorbell += count;
  }

  #postBlueFlame(): void {
    this.counts.blueFlame++;
    this.#work.postBlueFlame((text) => this.#note(text));
  }

  // ---- time ----

  #pass(): void {
    this.counts.time++;
    const ms = this.#draw.pick([0.001, 0.01, 0.1, 1, 20]);
    this.#note(`${ms} ms`);
    this.#life.synchronise();
    this.#life.device.pass(ms);
  }

  #reset(): void {
    const life = this.#life;
    life.synchronise();
    this.counts.reset++;
    const isFunction = this.#random.chance(0.5);
    this.#note(isFunction ? 'reset of the function' : 'reset by BAR0');
    if (isFunction) life.client.request(Command.DEVICE_RESET, new Uint8Array(0));
    else life.write32(bar0.registers.reset.offset, 1);
    this.#objects.forget();
    life.forgetToggle();
    if (this.#random.chance(0.8)) this.#bringUp(this.#drawStage());
  }

  #note(text: string): void {
    this.actions.push(text);
    if (this.actions.length > actionsKept) this.actions.shift();
  }
}

/** Commands that are due before INIT_HCA, and refused after it. */
const earlyCommands: ReadonlySet<CommandName | undefined> = new Set([
  'MAP_FA',
  'UNMAP_FA',
  'RUN_FW',
  'SET_ICM_SIZE',
  'MAP_ICM_AUX',
  'UNMAP_ICM_AUX',
  'INIT_HCA',
]);

/** The guest has sent an invalid message: the server takes its next bytes for a part of that. */
class LifeOver extends Error {}

const actionsKept = 40;
/** Actions between two of the bystander. */
const stepsPerLook = 8;
/** A device that was reset by a part of a command does not end it. */
const roughPatience = 3;
/** Probability of sending gathered messages, in addition to those that must wait for a reply. */
const flushChance = 0.12;

function textOf({ name, opcode, inputModifier, opcodeModifier, inParam, odd }: RoughCommand): string {
  const fields = odd.length > 0 ? `, odd: ${odd.join(' ')}` : '';
  return `${name ?? 'command'} ${hex(opcode)}, input ${hex(inputModifier)}, modifier ${opcodeModifier}, parameter ${hex(inParam)}${fields}`;
}

const hex = (value: number): string => `0x${value.toString(16)}`;
const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
