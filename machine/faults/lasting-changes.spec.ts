/** Which of several faults decides over a place, by hand. */
import { expect, it } from 'vitest';
import { LastingChanges } from './lasting-changes.ts';

interface Pull {
  readonly port: number;
  readonly isDown: boolean;
}

const machine = () => {
  const states = ['up', 'up'];
  const changes = new LastingChanges<Pull>(
    ({ port }) => `${port}`,
    ({ port, isDown }, isBeginning) => {
      states[port] = isDown === isBeginning ? 'down' : 'up';
    },
  );
  return { states, changes };
};

it('a cable stays pulled until the last of overlapping faults has ended', () => {
  const { states, changes } = machine();
  const [first, second] = [
    { port: 0, isDown: true },
    { port: 0, isDown: true },
  ];
  changes.begin(first);
  changes.begin(second);
  changes.end(first);
  expect(states).toEqual(['down', 'up']);
  changes.end(second);
  expect(states).toEqual(['up', 'up']);
});

it('a place is as the fault has it that began last, then as the one before', () => {
  const { states, changes } = machine();
  const [pulled, plugged] = [
    { port: 1, isDown: true },
    { port: 1, isDown: false },
  ];
  changes.begin(pulled);
  changes.begin(plugged);
  expect(states).toEqual(['up', 'up']);
  changes.end(plugged);
  expect(states).toEqual(['up', 'down']);
});

it('changes are made again after something else has restored the places', () => {
  const { states, changes } = machine();
  changes.begin({ port: 0, isDown: true });
  states.fill('up');
  changes.repeat();
  expect(states).toEqual(['down', 'up']);
});
