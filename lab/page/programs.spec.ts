import { expect, it } from 'vitest';
import { checkedFaults, parsedFault } from '../../machine/faults/index.ts';
import { faultMenu } from './programs.ts';

it('the menu offers faults that the machine accepts', () => {
  for (const { text } of faultMenu.filter((entry) => entry.text !== ''))
    expect(checkedFaults([parsedFault(text)], 2)).toHaveLength(1);
});
