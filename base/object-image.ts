/**
 * The state of a graph of objects at one moment, to be restored into the same objects later.
 *
 *     roots ─► every object reached by fields, elements, Maps and Sets ─► values of its fields, bytes of its memory
 *                                                                        ◄─ restore: what differs is written back
 *
 * Later objects are dropped, because no older object refers to them any more. A function is kept as it is: variables that code
 * closes over must be constant, and objects reached only by closures must be among the roots (test/machine-image.spec.ts checks
 * both, by the engine's own heap graph and by the sources).
 *
 * Private fields are visible if they are ordinary ones, as in all built forms of the model (build/plain-fields.ts); {@link
 * seesPrivateFields} tells whether they are here.
 */
import { InvariantError } from './assert.ts';

/** Saves a memory that is too large to be copied as a whole, by its own means. */
export interface MemoryImage {
  restore(): void;
}

/** An object that saves its own memory in its own way, and the method. */
export interface ImagedMemory {
  readonly buffer: ArrayBufferLike;
  imageOfMemory(): MemoryImage;
}

class Probe {
  readonly #field = 1;

  get field(): number {
    return this.#field;
  }
}

/** Whether the private fields of this process's classes are visible to an image. */
export const seesPrivateFields = (): boolean => {
  const probe = new Probe();
  return Object.values(probe).includes(probe.field);
};

/** An object whose state cannot be saved: a promise, a suspended function, an iterator. */
export class ImageError extends Error {
  override readonly name = 'ImageError';
}

type Fields = Record<PropertyKey, unknown>;

/** Objects with the same fields, and their values one after another. */
interface Shape {
  readonly keys: readonly PropertyKey[];
  readonly objects: Fields[];
  readonly values: unknown[];
  restore: RestoreShape | undefined;
}

/** An object that keeps all its state in fields, elements, entries or bytes: a promise, an iterator or a date does not. */
const openKinds: ReadonlySet<string> = new Set(['Object', 'Array', 'Map', 'Set', 'Error', 'RegExp']);
/** Records about other objects, each written once, together with its object: existing ones do not change, and new ones are dropped. */
const notes: ReadonlySet<string> = new Set(['WeakMap', 'WeakSet']);

export class ObjectImage {
  readonly #seen = new Set<object>();
  readonly #shapes = new Map<string, Shape>();
  readonly #keyNumbers = new Map<PropertyKey, number>();
  readonly #arrays: [array: unknown[], elements: readonly unknown[]][] = [];
  readonly #maps: [map: Map<unknown, unknown>, entries: readonly (readonly [unknown, unknown])[]][] = [];
  readonly #sets: [set: Set<unknown>, items: readonly unknown[]][] = [];
  readonly #records: [record: Fields, keys: readonly string[]][] = [];
  readonly #memories: [bytes: Uint8Array, copy: Uint8Array][] = [];
  readonly #memoryImages: MemoryImage[] = [];

  /**
   * @param roots where to begin
   * @throws ImageError for an object whose state cannot be saved
   */
  constructor(roots: readonly object[]) {
    if (!seesPrivateFields())
      throw new InvariantError('private fields', 'hidden', 'a built form of the model');
    const waiting: object[] = [...roots];
    const own = new Set<ArrayBufferLike>();
    const plain: ArrayBufferLike[] = [];
    for (let object = waiting.pop(); object !== undefined; object = waiting.pop()) {
      if (this.#seen.has(object)) continue;
      this.#seen.add(object);
      if (isImagedMemory(object)) {
        own.add(object.buffer);
        this.#memoryImages.push(object.imageOfMemory());
      }
      if (ArrayBuffer.isView(object)) plain.push(object.buffer);
      else if (isBuffer(object)) plain.push(object);
      else this.#take(object, waiting);
    }
    for (const buffer of new Set(plain)) if (!own.has(buffer)) this.#takeMemory(buffer);
  }

  /** Number of objects in it, including arrays, Maps, Sets and views of memory. */
  get objects(): ReadonlySet<object> {
    return this.#seen;
  }

  /** Restores everything. */
  restore(): void {
    // Objects with their own saving come first: their records, such as which pages were written, are in memories that are
    // restored later.
    for (const memory of this.#memoryImages) memory.restore();
    for (const shape of this.#shapes.values()) restoreShape(shape);
    for (const [array, elements] of this.#arrays) restoreArray(array, elements);
    for (const [map, entries] of this.#maps) restoreMap(map, entries);
    for (const [set, items] of this.#sets) restoreSet(set, items);
    for (const [record, keys] of this.#records) restoreKeys(record, keys);
    for (const [bytes, copy] of this.#memories) {
      bytes.set(copy);
      // It has grown since the image was taken.
      if (bytes.length > copy.length) empty(bytes.buffer, copy.length);
    }
  }

  #take(object: object, waiting: object[]): void {
    const tag = Object.prototype.toString.call(object).slice(8, -1);
    if (!openKinds.has(tag) && !notes.has(tag)) throw new ImageError(`no state that can be put back: ${tag}`);
    const note = (value: unknown): void => {
      if (typeof value === 'object' && value !== null) waiting.push(value);
    };
    if (Array.isArray(object)) {
      for (const element of object) note(element);
      if (!Object.isFrozen(object)) this.#arrays.push([object, object.slice()]);
      return;
    }
    if (object instanceof Map) {
      for (const [key, value] of object) {
        note(key);
        note(value);
      }
      this.#maps.push([object, [...object]]);
    } else if (object instanceof Set) {
      for (const item of object) note(item);
      this.#sets.push([object, [...object]]);
    }
    this.#takeFields(object as Fields, note);
  }

  #takeFields(object: Fields, note: (value: unknown) => void): void {
    const keys = Reflect.ownKeys(object);
    const isFrozen = Object.isFrozen(object);
    for (const key of keys) note(object[key]);
    if (isFrozen) return;
    const prototype: unknown = Object.getPrototypeOf(object);
    if (prototype === Object.prototype || prototype === null)
      this.#records.push([object, Object.keys(object)]);
    if (keys.length === 0) return;
    const writable = keys.filter((key) => isWritable(object, key));
    const shape = this.#shapeOf(object, writable);
    shape.objects.push(object);
    for (const key of writable) shape.values.push(object[key]);
  }

  #shapeOf(object: Fields, keys: readonly PropertyKey[]): Shape {
    const className = (object.constructor as { readonly name?: string } | undefined)?.name ?? '';
    const name = `${className} ${keys.map((key) => this.#numberOf(key)).join()}`;
    let shape = this.#shapes.get(name);
    if (shape === undefined) {
      shape = { keys, objects: [], values: [], restore: undefined };
      this.#shapes.set(name, shape);
    }
    return shape;
  }

  #numberOf(key: PropertyKey): number {
    let number = this.#keyNumbers.get(key);
    if (number === undefined) {
      number = this.#keyNumbers.size;
      this.#keyNumbers.set(key, number);
    }
    return number;
  }

  #takeMemory(buffer: ArrayBufferLike): void {
    const bytes = new Uint8Array(buffer);
    this.#memories.push([bytes, bytes.slice()]);
  }
}

/** V8 fills shared memory element by element: uses 64 bits at a time if the length allows. */
function empty(memory: ArrayBufferLike, from: number): void {
  const isEven = (from | memory.byteLength) % Float64Array.BYTES_PER_ELEMENT === 0;
  (isEven ? new Float64Array(memory, from) : new Uint8Array(memory, from)).fill(0);
}

const isImagedMemory = (object: object): object is ImagedMemory =>
  'imageOfMemory' in object && typeof object.imageOfMemory === 'function';

const isBuffer = (object: object): object is ArrayBufferLike =>
  object instanceof ArrayBuffer ||
  (typeof SharedArrayBuffer !== 'undefined' && object instanceof SharedArrayBuffer);

const isWritable = (object: Fields, key: PropertyKey): boolean =>
  Reflect.getOwnPropertyDescriptor(object, key)!.writable === true;

type RestoreShape = (objects: readonly Fields[], values: readonly unknown[]) => void;

/** A separate loop for each frequent shape is ten times as fast, since it sees only one shape. */
const compiledFrom = 64;

/** @returns undefined for few objects, and if a page's security policy forbids compiling */
function compiledRestore({ keys, values }: Shape): RestoreShape | undefined {
  if (values.length < compiledFrom || keys.some((key) => typeof key !== 'string')) return;
  const lines = keys.map((key, field) => {
    const member = `object[${JSON.stringify(key)}]`;
    return `value = values[at + ${field}]; if (${member} !== value || (value === 0 && 1 / ${member} !== 1 / value)) ${member} = value;`;
  });
  const body = `
    let value;
    for (let index = 0, at = 0; index < objects.length; index++, at += ${keys.length}) {
      const object = objects[index];
      ${lines.join('\n      ')}
    }`;
  try {
    return new Function('objects', 'values', body) as RestoreShape;
  } catch {
    return;
  }
}

function restoreShape(shape: Shape): void {
  const { keys, objects, values } = shape;
  shape.restore ??= compiledRestore(shape);
  if (shape.restore !== undefined) {
    shape.restore(objects, values);
    return;
  }
  const { length } = keys;
  for (let field = 0; field < length; field++) {
    const key = keys[field]!;
    for (let index = 0, at = field; index < objects.length; index++, at += length) {
      const object = objects[index]!;
      const value = values[at];
      if (!Object.is(object[key], value)) object[key] = value;
    }
  }
}

function restoreArray(array: unknown[], elements: readonly unknown[]): void {
  if (array.length !== elements.length) array.length = elements.length;
  for (let index = 0; index < elements.length; index++)
    if (!Object.is(array[index], elements[index])) array[index] = elements[index];
}

function restoreMap(map: Map<unknown, unknown>, entries: readonly (readonly [unknown, unknown])[]): void {
  if (map.size === entries.length) {
    let at = 0;
    let isSame = true;
    for (const [key, value] of map) {
      const [keptKey, keptValue] = entries[at++]!;
      if (key === keptKey && Object.is(value, keptValue)) continue;
      isSame = false;
      break;
    }
    if (isSame) return;
  }
  map.clear();
  for (const [key, value] of entries) map.set(key, value);
}

function restoreSet(set: Set<unknown>, items: readonly unknown[]): void {
  if (set.size === 0 && items.length === 0) return;
  set.clear();
  for (const item of items) set.add(item);
}

/** A record used as a table has lost entries that were absent then. */
function restoreKeys(record: Fields, kept: readonly string[]): void {
  const keys = Object.keys(record);
  if (keys.length === kept.length) return;
  for (const key of keys) if (!kept.includes(key)) delete record[key];
}
