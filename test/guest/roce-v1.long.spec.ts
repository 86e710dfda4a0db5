/** Frames of a conventional card, and verbs next to them on a card with version 1 only, whose GIDs are set by another command. */
import { testScenario } from './suite.ts';

await testScenario('roce-v1', 'debian');
