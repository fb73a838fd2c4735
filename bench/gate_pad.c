/*
 * gate_pad.c - code that nobody calls, linked in front of gate_mew.c: the same source in another place of the file.
 */
__attribute__((used)) static void in_front(void)
{
	__asm__ volatile(".fill 4200, 1, 0x90");
}
