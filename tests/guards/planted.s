
planted.o:     file format elf64-x86-64


Disassembly of section .text:

0000000000000000 <keeps_its_sums>:
       0:	mov    %rsp,%rbp
       8:	vmovaps %ymm4,0x40(%rsp)
      10:	vmovups (%rcx),%ymm1
      18:	vbroadcastss (%rax),%ymm0
      20:	vfmadd231ps %ymm0,%ymm1,%ymm4
      28:	vfmadd231ps %ymm0,%ymm1,%ymm5
      30:	vfmadd231ps %ymm0,%ymm1,%ymm6
      38:	vfmadd231ps %ymm0,%ymm1,%ymm7
      40:	vfmadd231ps %ymm0,%ymm2,%ymm8
      48:	vfmadd231ps %ymm0,%ymm2,%ymm9
      50:	vfmadd231ps %ymm0,%ymm2,%ymm10
      58:	vfmadd231ps %ymm0,%ymm2,%ymm11
      60:	vmovups (%rsp,%rdx,4),%ymm2
      68:	lea    0x20(%rsp),%r8
      70:	cmp    %rdx,0x18(%rsp)
      78:	jne    10 <keeps_its_sums+0x10>
      80:	vmovaps 0x40(%rsp),%ymm4
      88:	jmp    8 <keeps_its_sums+0x8>

0000000000000200 <has_rbp_for_data>:
     200:	vmovups -0x20(%rbp),%ymm1
     208:	vbroadcastss (%rax),%ymm0
     210:	vfmadd231ps %ymm0,%ymm1,%ymm4
     218:	vfmadd231ps %ymm0,%ymm1,%ymm5
     220:	vfmadd231ps %ymm0,%ymm1,%ymm6
     228:	vfmadd231ps %ymm0,%ymm1,%ymm7
     230:	vfmadd231ps %ymm0,%ymm2,%ymm8
     238:	vfmadd231ps %ymm0,%ymm2,%ymm9
     240:	vfmadd231ps %ymm0,%ymm2,%ymm10
     248:	vfmadd231ps %ymm0,%ymm2,%ymm11
     250:	dec    %rdx
     258:	jne    200 <has_rbp_for_data+0x0>
     260:	ret

0000000000000400 <is_a_polynomial>:
     400:	vmovups (%rcx),%ymm0
     408:	vfmadd213ps 0x0(%rsp),%ymm0,%ymm1
     410:	vmulps %ymm1,%ymm1,%ymm2
     418:	vaddps %ymm2,%ymm1,%ymm1
     420:	vminps %ymm1,%ymm3,%ymm1
     428:	vfmadd213ps 0x20(%rsp),%ymm0,%ymm1
     430:	vmulps %ymm1,%ymm1,%ymm2
     438:	vaddps %ymm2,%ymm1,%ymm1
     440:	vminps %ymm1,%ymm3,%ymm1
     448:	vfmadd213ps 0x40(%rsp),%ymm0,%ymm1
     450:	vmulps %ymm1,%ymm1,%ymm2
     458:	vaddps %ymm2,%ymm1,%ymm1
     460:	vminps %ymm1,%ymm3,%ymm1
     468:	vfmadd213ps 0x60(%rsp),%ymm0,%ymm1
     470:	vmulps %ymm1,%ymm1,%ymm2
     478:	vaddps %ymm2,%ymm1,%ymm1
     480:	vminps %ymm1,%ymm3,%ymm1
     488:	vfmadd213ps 0x80(%rsp),%ymm0,%ymm1
     490:	vmulps %ymm1,%ymm1,%ymm2
     498:	vaddps %ymm2,%ymm1,%ymm1
     4a0:	vminps %ymm1,%ymm3,%ymm1
     4a8:	vfmadd213ps 0xa0(%rsp),%ymm0,%ymm1
     4b0:	vmulps %ymm1,%ymm1,%ymm2
     4b8:	vaddps %ymm2,%ymm1,%ymm1
     4c0:	vminps %ymm1,%ymm3,%ymm1
     4c8:	vfmadd213ps 0xc0(%rsp),%ymm0,%ymm1
     4d0:	vmulps %ymm1,%ymm1,%ymm2
     4d8:	vaddps %ymm2,%ymm1,%ymm1
     4e0:	vminps %ymm1,%ymm3,%ymm1
     4e8:	vfmadd213ps 0xe0(%rsp),%ymm0,%ymm1
     4f0:	vmulps %ymm1,%ymm1,%ymm2
     4f8:	vaddps %ymm2,%ymm1,%ymm1
     500:	vminps %ymm1,%ymm3,%ymm1
     508:	jne    400 <is_a_polynomial+0x0>
     510:	ret

0000000000000800 <spills_a_sum>:
     800:	vmovups (%rcx),%ymm1
     808:	vbroadcastss (%rax),%ymm0
     810:	vfmadd231ps %ymm0,%ymm1,%ymm4
     818:	vfmadd231ps %ymm0,%ymm1,%ymm5
     820:	vfmadd231ps %ymm0,%ymm1,%ymm6
     828:	vfmadd231ps %ymm0,%ymm1,%ymm7
     830:	vfmadd231ps %ymm0,%ymm2,%ymm8
     838:	vfmadd231ps %ymm0,%ymm2,%ymm9
     840:	vfmadd231ps %ymm0,%ymm2,%ymm10
     848:	vmovaps 0x20(%rsp),%ymm3
     850:	vfmadd231ps %ymm0,%ymm2,%ymm11
     858:	vmovaps %ymm3,0x20(%rsp)
     860:	jne    800 <spills_a_sum+0x0>
     868:	ret

0000000000000a00 <spills_to_its_frame>:
     a00:	mov    %rsp,%rbp
     a08:	vmovups (%rcx),%ymm1
     a10:	vbroadcastss (%rax),%ymm0
     a18:	vfmadd231ps %ymm0,%ymm1,%ymm4
     a20:	vfmadd231ps %ymm0,%ymm1,%ymm5
     a28:	vfmadd231ps %ymm0,%ymm1,%ymm6
     a30:	vfmadd231ps %ymm0,%ymm1,%ymm7
     a38:	vfmadd231ps %ymm0,%ymm2,%ymm8
     a40:	vfmadd231ps %ymm0,%ymm2,%ymm9
     a48:	vfmadd231ps %ymm0,%ymm2,%ymm10
     a50:	vfmadd213ps -0xb0(%rbp),%ymm0,%ymm1
     a58:	vmovaps %ymm1,-0xb0(%rbp)
     a60:	jne    a08 <spills_to_its_frame+0x8>
     a68:	ret
