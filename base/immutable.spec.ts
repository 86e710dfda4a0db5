import { expect, it } from 'vitest';
import { immutable } from './immutable.ts';
import { ObjectImage } from './object-image.ts';
import { registerBank, wholeRegister } from './registers.ts';

it('a constant and everything that it refers to reject writes', () => {
  const data = immutable({ list: [{ a: 1 }], group: { b: 2 } });
  expect(() => Object.assign(data, { list: [] })).toThrow(TypeError);
  expect(() => Object.assign(data.group, { b: 3 })).toThrow(TypeError);
  expect(() => data.list.push({ a: 2 })).toThrow(TypeError);
  expect(() => Object.assign(data.list[0]!, { a: 2 })).toThrow(TypeError);
});

it('a cyclic or shared object is made constant once', () => {
  const shared = { a: 1 };
  const ring: { next?: object } = {};
  ring.next = { ring };
  immutable([shared, ring, { shared }]);
  expect([shared, ring, ring.next].every((one) => Object.isFrozen(one))).toBe(true);
});

it('an image stores nothing of one, except mutable objects to which it refers', () => {
  const counter = { count: 1 };
  const image = new ObjectImage([Object.freeze([counter])]);
  counter.count = 2;
  image.restore();
  expect(counter.count).toBe(1);
});

it('a bank of registers is one', () => {
  const { registers } = registerBank(
    'bank',
    { sizeBytes: 4, source: 'none' },
    { control: wholeRegister(0, 4, 'rw', '') },
  );
  expect(() => Object.assign(registers.control.fields.value, { resetValue: 1 })).toThrow(TypeError);
});
