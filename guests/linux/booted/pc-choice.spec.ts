import { describe, expect, it } from 'vitest';
import { parsedPcParameters, pcConfigOf } from './pc-choice.ts';

describe('parameters of a PC', () => {
  it('are integers, but for the cycles of an instruction, and have defaults', () => {
    const chosen = parsedPcParameters(['coreMhz=500', 'cyclesPerInstruction=0.5']);
    expect(chosen).toEqual({ coreMhz: 500, cyclesPerInstruction: 0.5 });
    expect(pcConfigOf(chosen)).toMatchObject({ ...chosen, memoryMib: 192 });
  });

  it.each([
    [{ coreMhz: 99 }, 'coreMhz is 99, expected an integer from 100 to 10000 MHz'],
    [{ wakeCycles: 0.5 }, 'wakeCycles is 0.5, expected an integer from 0 to 1000000 cycles'],
    [
      { cyclesPerInstruction: Number.NaN },
      'cyclesPerInstruction is NaN, expected a number from 0.1 to 100 cycles',
    ],
  ])('are rejected out of range, also by the library: %j', (chosen, message) => {
    expect(() => pcConfigOf(chosen)).toThrow(message);
  });
});
