import { describe, expect, it, vi } from 'vitest';
import { type ImagedMemory, ImageError, ObjectImage, seesPrivateFields } from './object-image.ts';

class Node {
  readonly name: string;
  count = 0;
  next: Node | undefined;

  constructor(name: string) {
    this.name = name;
  }
}

describe('an image restores', () => {
  it('0 where -0 was stored, which equals it and divides differently', () => {
    const nodes = Array.from({ length: 200 }, () => new Node('n'));
    const few = { list: [0], table: new Map([[1, 0]]), zero: 0 };
    const image = new ObjectImage([nodes, few]);
    for (const node of nodes) node.count = -0;
    few.list[0] = -0;
    few.table.set(1, -0);
    few.zero = -0;
    image.restore();
    expect(nodes.every(({ count }) => Object.is(count, 0))).toBe(true);
    expect([few.list[0], few.table.get(1), few.zero].every((value) => Object.is(value, 0))).toBe(true);
  });

  it('fields of objects, however they are reached, in the same objects', () => {
    const [first, second] = [new Node('first'), new Node('second')];
    first.next = second;
    second.next = first;
    const root = { table: new Map([[1, first]]), list: [second], set: new Set([second]) };
    const image = new ObjectImage([root]);
    expect(image.objects.has(first)).toBe(true);
    first.count = 7;
    first.next = new Node('third');
    second.count = -0.5;
    root.table.set(2, second).delete(1);
    root.list.push(first, first);
    root.set.clear();
    root.set.add(first);
    image.restore();
    expect([first.count, first.next, second.count]).toEqual([0, second, 0]);
    expect([...root.table]).toEqual([[1, first]]);
    expect(root.list).toEqual([second]);
    expect(root.list[0]).toBe(second);
    expect([...root.set]).toEqual([second]);
  });

  it('the same with enough objects of a class to make a separate loop worthwhile', () => {
    const nodes = Array.from({ length: 200 }, (_, at) =>
      Object.assign(new Node(`n${at}`), { count: at / 3 }),
    );
    const image = new ObjectImage(nodes);
    for (const round of [1, 2]) {
      for (const node of nodes) {
        node.count = round === 1 ? Number.NaN : 1;
        node.next = nodes[0];
      }
      image.restore();
      expect(nodes.every(({ count, next }, at) => count === at / 3 && next === undefined)).toBe(true);
    }
  });

  it('entries of a record used as a table, and nothing else', () => {
    const record: Record<string, number> = { a: 1 };
    const image = new ObjectImage([{ record }]);
    record['b'] = 2;
    record['a'] = 3;
    image.restore();
    expect(record).toEqual({ a: 1 });
  });

  it('memory, once for all views of it; its grown part is zero', () => {
    const buffer = new SharedArrayBuffer(8, { maxByteLength: 64 });
    const words = new Int32Array(buffer, 0, 2);
    words[0] = 5;
    const image = new ObjectImage([{ words, bytes: new Uint8Array(buffer, 0, 8) }]);
    buffer.grow(16);
    new Uint8Array(buffer).fill(9);
    image.restore();
    expect([...new Int32Array(buffer, 0, 4)]).toEqual([5, 0, 0, 0]);
  });

  it('memory that saves itself by its own means', () => {
    const buffer = new ArrayBuffer(4);
    const restored = vi.fn<() => void>();
    const own: ImagedMemory = { buffer, imageOfMemory: () => ({ restore: restored }) };
    const bytes = new Uint8Array(buffer);
    const image = new ObjectImage([{ own, bytes }]);
    bytes[0] = 3;
    image.restore();
    expect(restored).toHaveBeenCalledOnce();
    expect(bytes[0]).toBe(3);
  });

  it('such memory by its own records, which are in the image, too', () => {
    const buffer = new ArrayBuffer(4);
    const bytes = new Uint8Array(buffer);
    const isWritten = new Uint8Array(1);
    const own: ImagedMemory & { isWritten: Uint8Array } = {
      buffer,
      isWritten,
      imageOfMemory: () => ({ restore: () => void (isWritten[0] === 1 && bytes.fill(0)) }),
    };
    const image = new ObjectImage([own]);
    bytes.fill(9);
    isWritten[0] = 1;
    image.restore();
    expect([...bytes, ...isWritten]).toEqual([0, 0, 0, 0, 0]);
  });

  it('nothing of an object that cannot change', () => {
    const frozen = Object.freeze({ a: 1 });
    expect(() => new ObjectImage([frozen]).restore()).not.toThrow();
  });
});

it('a suspended object has no state that can be saved', () => {
  expect(() => new ObjectImage([{ wait: Promise.resolve() }])).toThrow(ImageError);
  function* steps(): Generator<number> {
    yield 1;
  }
  expect(() => new ObjectImage([{ steps: steps() }])).toThrow('put back: Generator');
  expect(() => new ObjectImage([{ next: [1].values() }])).toThrow('put back: Array Iterator');
  expect(() => new ObjectImage([{ date: new Date(0) }])).toThrow('put back: Date');
});

it('private fields are visible in the form in which the model is tested and run', () => {
  expect(seesPrivateFields()).toBe(true);
});
