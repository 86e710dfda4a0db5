/** Frames of a conventional card, and verbs beside them on one that has version 1 only, whose GIDs come by another command. */
import { testScenario } from './suite.ts';

await testScenario('roce-v1', 'debian');
